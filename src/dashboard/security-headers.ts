import type { Request, RequestHandler } from 'express';
import helmet from 'helmet';

/** Payout pages run only our own script, whatever a payout's texts contain. It fetches only the page itself. */
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

/** Bull Board runs only scripts of its own files, and its components write inline styles. */
const BOARD_SOURCES = {
  ...PAGE_SOURCES,
  'style-src': ["'self'", "'unsafe-inline'"],
  'font-src': ["'self'", 'data:'],
  'base-uri': ["'self'"],
};

export const pageHeaders = securityHeaders(PAGE_SOURCES);

export const boardHeaders = securityHeaders(BOARD_SOURCES);

function securityHeaders(directives: Record<string, string[]>): RequestHandler {
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives },
    xFrameOptions: { action: 'deny' },
    // The TLS proxy decides this. Set here, it would also bind other ports of the host.
    strictTransportSecurity: false,
  });
}

/** Browsers and proxies must not cache payouts. They may cache Bull Board's static files. */
export const noStore: RequestHandler = (request, response, next) => {
  if (!/^(\/accounts\/\d+)?\/board\/static\//.test(request.path)) response.set('Cache-Control', 'no-store');
  next();
};

/** Refuses every writing method before it reaches a handler. The one write is mounted before this. */
export const refuseWrites: RequestHandler = (request, response, next) => {
  if (request.method === 'GET' || request.method === 'HEAD') {
    next();
    return;
  }
  response.set('Allow', 'GET, HEAD');
  response.status(405).json({ error: 'The dashboard is read-only; use the payouts command.' });
};

/**
 * Refuses requests that another site's page makes through a browser with a remembered password. Forms cannot send JSON,
 * and no dashboard page sends any, so this is mounted before pages and write.
 */
export const refuseCrossSite: RequestHandler = (request, response, next) => {
  const site = findForeignSite(request);
  if (site === undefined) next();
  else
    response.status(403).json({ code: 'CROSS_SITE', error: `Refused: a page of another site asked for it (${site}).` });
};

function findForeignSite({ headers, host }: Request): string | undefined {
  const { origin, 'sec-fetch-site': fetchSite } = headers;
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return `Sec-Fetch-Site: ${fetchSite}`;
  }
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host)) return `Origin: ${origin}`;
  return undefined;
}
