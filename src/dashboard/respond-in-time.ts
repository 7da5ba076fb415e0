import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { RedisUnavailableError } from '../errors.js';
import type { AccountWatch, Observation } from './pulse/account-watch.js';

/** No page takes longer where Redis does not respond. */
const RESPOND_WITHIN_MS = 900;

const CHECK_AGAIN_MS = 100;

const RETRY_AFTER_S = '5';

/** Writes what is known without Redis. */
export type RespondWithoutRedis = (request: Request, response: Response, observation: Observation) => void;

/**
 * Responds in place of every later handler while Redis does not: at once where that is known, else as soon as it is. A
 * handler that is only slow, because it reads much, is waited for.
 */
export function respondInTime(watch: AccountWatch, respond: RespondWithoutRedis): RequestHandler {
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

/** Responds in the same way where a handler found out first. */
export function respondToLostRedis(watch: AccountWatch, respond: RespondWithoutRedis): ErrorRequestHandler {
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
