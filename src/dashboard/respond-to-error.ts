import type { ErrorRequestHandler, Request } from 'express';
import { UnsupportedFormatError } from '../errors.js';
import type { Logger } from '../logger.js';
import { messagePage, type Message } from './message-page.js';
import type { DashboardSite, Site } from './site.js';

/** The details of an internal error go to the log only. */
export function respondToError(
  toSite: (request: Request) => Site | DashboardSite,
  logger: Logger,
): ErrorRequestHandler {
  return (error: Error & { readonly status?: number }, request, response, next) => {
    // It was responded to because Redis took too long; what came of the handler afterwards matters to nobody.
    if (response.writableEnded) return;
    if (response.headersSent) {
      next(error);
      return;
    }
    const site = toSite(request);
    if (error.status === 400) {
      response.status(400).send(messagePage(site, { title: 'Not found', text: 'The URL is malformed.' }));
    } else {
      logger.error({ path: request.path, error: error.stack }, 'request failed');
      response.status(500).send(messagePage(site, describeError(error)));
    }
  };
}

/** An operator who updates only one of the programs can resolve it; all else is for the log. */
function describeError(error: Error): Message {
  if (error instanceof UnsupportedFormatError) return { title: 'Ledger of a newer version', text: error.message };
  return { title: 'Internal error', text: 'Internal error; see the log of the dashboard.' };
}
