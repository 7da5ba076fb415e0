import type { ErrorRequestHandler, Request } from 'express';
import { RedisUnavailableError } from '../errors.js';
import type { Logger } from '../logger.js';
import { messagePage } from './message-page.js';
import type { DashboardSite, Site } from './site.js';

const RETRY_AFTER_S = '5';

/** An unavailable Redis is reported as 503, for the client to retry. The details of an internal error go to the log only. */
export function respondToError(
  toSite: (request: Request) => Site | DashboardSite,
  logger: Logger,
): ErrorRequestHandler {
  return (error: Error & { readonly status?: number }, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const site = toSite(request);
    if (error instanceof RedisUnavailableError) {
      const message = {
        title: 'Redis unavailable',
        text: `${error.message}. The payouts are safe; reload in a moment.`,
      };
      response.status(503).set('Retry-After', RETRY_AFTER_S).send(messagePage(site, message));
    } else if (error.status === 400) {
      response.status(400).send(messagePage(site, { title: 'Not found', text: 'The URL is malformed.' }));
    } else {
      logger.error({ path: request.path, error: error.stack }, 'request failed');
      const text = 'Internal error; see the log of the dashboard.';
      response.status(500).send(messagePage(site, { title: 'Internal error', text }));
    }
  };
}
