import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import { KnownBrowsers } from './known-browser.js';
import type { LoginMetrics } from './login-metrics.js';
import { LoginThrottle, networkOf } from './login-throttle.js';

export interface Login {
  readonly user: string;
  readonly password: string;
}

interface LoginWatch {
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
  readonly metrics: LoginMetrics;
}

/**
 * Requires this user and password (RFC 7617); other requests get 401, and a client that guesses gets 429 before its
 * password is read.
 *
 * Hashes of both are always compared, in constant time: the response time tells nothing about how much of a guess was
 * right, or how long the password is.
 */
export function requireLogin({ user, password }: Login, { clock, logger, metrics }: LoginWatch): RequestHandler {
  const expected = { user: digest(user), password: digest(password) };
  const throttle = new LoginThrottle(() => clock.now());
  const browsers = new KnownBrowsers();

  const isRight = (given: Login): boolean => {
    const isUser = timingSafeEqual(digest(given.user), expected.user);
    const isPassword = timingSafeEqual(digest(given.password), expected.password);
    return isUser && isPassword;
  };
  const countFailure = (client: string): void => {
    metrics.failures.inc();
    const { failures, waitMs } = throttle.countFailure(client);
    if (waitMs > 0) logger.warn({ client, failures, waitMs }, 'wrong passwords for the dashboard; client has to wait');
  };

  return (request, response, next) => {
    const given = parseAuthorization(request.headers.authorization);
    const browser = browsers.idOf(request);
    const client =
      browser === undefined ? networkOf(request.ip ?? '') : `browser ${browser.slice(0, 8)} that signed in before`;
    const waitMs = given === undefined ? 0 : throttle.waitMs(client);
    if (waitMs > 0) {
      metrics.refused.inc();
      refuse(response, waitMs);
    } else if (given !== undefined && isRight(given)) {
      if (browser === undefined) browsers.remember(request, response);
      next();
    } else {
      if (given !== undefined) countFailure(client);
      response.set('WWW-Authenticate', 'Basic realm="payouts", charset="UTF-8"');
      response.status(401).type('text').send('Sign in with the user and password of the dashboard.\n');
    }
  };
}

function refuse(response: Response, waitMs: number): void {
  const seconds = Math.ceil(waitMs / 1_000);
  response.status(429).set('Retry-After', String(seconds)).type('text');
  response.send(`Too many wrong passwords from here: try again in ${seconds} s.\n`);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Undefined without credentials, as in a browser's first request: that is no try. */
function parseAuthorization(header: Request['headers']['authorization']): Login | undefined {
  const [, encoded] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon === -1 ? { user: '', password: '' } : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
