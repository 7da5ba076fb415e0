import type { RequestHandler } from 'express';
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
