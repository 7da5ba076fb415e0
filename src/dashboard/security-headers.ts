import type { RequestHandler } from 'express';
import helmet from 'helmet';

/** Our own pages are plain HTML: no script runs on them, whatever a payout's texts hold. */
const PAGE_SOURCES = {
  'default-src': ["'none'"],
  'style-src': ["'self'"],
  'img-src': ["'self'", 'data:'],
  'form-action': ["'self'"],
  'base-uri': ["'none'"],
  'frame-ancestors': ["'none'"],
};

/** Bull Board is an application of its own files only. Its components write styles into the page. */
const BOARD_SOURCES = {
  ...PAGE_SOURCES,
  'script-src': ["'self'"],
  'style-src': ["'self'", "'unsafe-inline'"],
  'font-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'base-uri': ["'self'"],
};

/** Headers for the pages of payouts, which load nothing but their style sheet. */
export const pageHeaders = securityHeaders(PAGE_SOURCES);

/** Headers for everything of Bull Board. */
export const boardHeaders = securityHeaders(BOARD_SOURCES);

function securityHeaders(directives: Record<string, string[]>): RequestHandler {
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives },
    xFrameOptions: { action: 'deny' },
    // Whoever puts TLS in front decides for how long browsers must insist on it; here it would bind other ports of the host.
    strictTransportSecurity: false,
  });
}

/** Payouts must not stay in a browser's or a proxy's cache. Bull Board's files are the same for everyone and may. */
export const noStore: RequestHandler = (request, response, next) => {
  if (!request.path.startsWith('/board/static/')) response.set('Cache-Control', 'no-store');
  next();
};

/** Nothing is changed through the dashboard, so every other method is refused before anyone looks at it. */
export const refuseWrites: RequestHandler = (request, response, next) => {
  if (request.method === 'GET' || request.method === 'HEAD') {
    next();
    return;
  }
  response.set('Allow', 'GET, HEAD');
  response.status(405).json({ error: 'The dashboard is read only: use the payouts command to change something.' });
};
