import type { Request, RequestHandler } from 'express';
import helmet from 'helmet';

/** On the payout pages only our own script runs, whatever a payout's texts contain. It fetches nothing but the page itself. */
const PAGE_SOURCES = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'connect-src': ["'self'"],
  'style-src': ["'self'"],
  'img-src': ["'self'", 'data:'],
  'form-action': ["'self'"],
  'base-uri': ["'none'"],
  'frame-ancestors': ["'none'"],
};

/** Bull Board runs scripts from its own files only, and its components write inline styles. */
const BOARD_SOURCES = {
  ...PAGE_SOURCES,
  'style-src': ["'self'", "'unsafe-inline'"],
  'font-src': ["'self'", 'data:'],
  'base-uri': ["'self'"],
};

/** Headers for the payout pages, which load nothing but their style sheet and script. */
export const pageHeaders = securityHeaders(PAGE_SOURCES);

/** Headers for everything of Bull Board. */
export const boardHeaders = securityHeaders(BOARD_SOURCES);

function securityHeaders(directives: Record<string, string[]>): RequestHandler {
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives },
    xFrameOptions: { action: 'deny' },
    // For the TLS proxy in front to decide; set here, it would also bind other ports of the host.
    strictTransportSecurity: false,
  });
}

/** Payouts must not be cached by browsers or proxies. Bull Board's static files may be. */
export const noStore: RequestHandler = (request, response, next) => {
  if (!/^(\/accounts\/\d+)?\/board\/static\//.test(request.path)) response.set('Cache-Control', 'no-store');
  next();
};

/** The pages change nothing: any other method is refused before it reaches a handler. The one write stands before this. */
export const refuseWrites: RequestHandler = (request, response, next) => {
  if (request.method === 'GET' || request.method === 'HEAD') {
    next();
    return;
  }
  response.set('Allow', 'GET, HEAD');
  response.status(405).json({ error: 'The dashboard is read-only; use the payouts command.' });
};

/**
 * Refuses what a page of another site has a browser send. A form cannot send JSON, and no page of the dashboard sends any:
 * this stands before both, for browsers that are told to remember the password.
 */
export const refuseCrossSite: RequestHandler = (request, response, next) => {
  const site = findForeignSite(request);
  if (site === undefined) next();
  else
    response.status(403).json({ code: 'CROSS_SITE', error: `Refused: a page of another site asked for it (${site}).` });
};

/** What in the request says so. */
function findForeignSite({ headers, host }: Request): string | undefined {
  const { origin, 'sec-fetch-site': fetchSite } = headers;
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return `Sec-Fetch-Site: ${fetchSite}`;
  }
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host)) return `Origin: ${origin}`;
  return undefined;
}
