import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { RedisUnavailableError, UnreadableRecordError, UnsupportedFormatError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { html } from './layout/html.js';
import { type DashboardSite, layout, PULSE_PAGE, type Site } from './layout/layout.js';
import type { AccountPoller, Observation } from '../operator/account-poller.js';
import { accountHeadline, otherVersionHeadline } from '../operator/account-headline.js';
import { pulseCard } from './overview/pulse-card.js';
import { runbookLink } from './runbooks.js';

/** The longest time of a page without Redis. */
const RESPOND_WITHIN_MS = 900;

const CHECK_AGAIN_MS = 100;

const RETRY_AFTER_S = '5';

export type RespondWithoutRedis = (request: Request, response: Response, observation: Observation) => void;

/**
 * Replaces all later handlers while Redis does not respond. A handler that is slow only because it reads much is waited
 * for.
 */
export function respondInTime(watch: AccountPoller, respond: RespondWithoutRedis): RequestHandler {
  return async (request, response, next) => {
    const observation = await watch.visit();
    if (observation.redis.kind === 'unavailable') {
      respondUnavailable(respond, { request, response, observation });
      return;
    }
    const check = (): void => {
      if (response.headersSent) return;
      if (watch.observation.redis.kind === 'up') timer = setTimeout(check, CHECK_AGAIN_MS);
      else respondUnavailable(respond, { request, response, observation: watch.observation });
    };
    let timer = setTimeout(check, RESPOND_WITHIN_MS);
    response.once('close', () => {
      clearTimeout(timer);
    });
    next();
  };
}

export function respondToLostRedis(watch: AccountPoller, respond: RespondWithoutRedis): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (!(error instanceof RedisUnavailableError) || response.headersSent) {
      next(error);
      return;
    }
    const redis = { kind: 'unavailable', sinceMs: 0, reason: 'a command failed' } as const;
    respondUnavailable(respond, { request, response, observation: { ...watch.observation, redis } });
  };
}

function respondUnavailable(
  respond: RespondWithoutRedis,
  { request, response, observation }: { request: Request; response: Response; observation: Observation },
): void {
  response.status(503).set('Retry-After', RETRY_AFTER_S);
  respond(request, response, observation);
}

export function respondToError(
  toSite: (request: Request) => Site | DashboardSite,
  logger: Logger,
): ErrorRequestHandler {
  return (error: Error & { readonly status?: number }, request, response, next) => {
    // The response already went out because Redis took too long.
    if (response.writableEnded) return;
    if (response.headersSent) {
      next(error);
      return;
    }
    const site = toSite(request);
    if (error.status === 400) {
      response.status(400).send(messagePage(site, { title: 'Not found', text: 'The URL is malformed.' }));
    } else if (error instanceof UnreadableRecordError) {
      logger.error({ path: request.path, error: error.message }, 'Redis has what cannot be read');
      response.status(422).send(messagePage(site, describeError(error)));
    } else if (error instanceof UnsupportedFormatError) {
      logger.error({ path: request.path, error: error.message }, 'the ledger is of another version');
      response.status(500).send(otherVersionPage(site, error));
    } else {
      logger.error({ path: request.path, error: error.stack }, 'request failed');
      response.status(500).send(messagePage(site, describeError(error)));
    }
  };
}

/** The log has what this leaves out. */
function describeError(error: Error): Message {
  if (error instanceof UnreadableRecordError) {
    return { title: 'Cannot be read', text: error.message, runbook: 'docs/runbooks/redis-altered.md' };
  }
  return { title: 'Internal error', text: 'Internal error; see the log of the dashboard.' };
}

interface Message {
  readonly title: string;
  readonly text: string;
  readonly search?: string;
  readonly runbook?: string;
}

export function messagePage(site: Site | DashboardSite, { title, text, search, runbook }: Message): string {
  return layout(
    site,
    search === undefined ? { title } : { title, search },
    html`<section class="card message">
      <h1>${title}</h1>
      <p>${text}</p>
      ${runbook && runbookLink(site, runbook)}
      <p><a href="${'base' in site ? `${site.base}/overview` : `${site.root}/accounts`}">Overview</a></p>
    </section>`,
  );
}

/** An operator can resolve different versions. It is live, so that an open page that was green shows it too. */
function otherVersionPage(site: Site | DashboardSite, error: UnsupportedFormatError): string {
  const pulse = otherVersionHeadline(error);
  const observation = { redis: { kind: 'up' }, ledger: undefined } as const;
  return layout(site, { title: pulse.headline, ...PULSE_PAGE }, pulseCard(site, pulse, observation, undefined));
}

/** The page of an account while Redis does not respond: only what is known. */
export function unavailablePage(site: Site, observation: Observation): string {
  const pulse = accountHeadline(observation);
  return layout(
    site,
    { title: pulse.headline, ...PULSE_PAGE },
    html`${pulseCard(site, pulse, observation, undefined)}
      <p class="card quiet">Payouts, figures and lists are in Redis: they are shown again as soon as it responds.</p>`,
  );
}
