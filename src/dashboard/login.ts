import { createHash, timingSafeEqual } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { Request, RequestHandler } from 'express';
import { Counter, Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Logger } from '../base/logger.js';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** Wrong passwords per client and time: an operator mistypes, a script guesses. */
const LIMIT = { points: 10, duration: 15 * 60 };

/** Limit of remembered clients. The one that failed longest ago is dropped first. */
const MAX_CLIENTS = 10_000;

/** The count of wrong passwords, for Prometheus at the dashboard's `/metrics`, behind the password. */
export function createLoginMetrics(registry = new Registry()): {
  readonly registry: Registry;
  readonly failures: Counter;
} {
  const failures = new Counter({
    name: 'payouts_dashboard_login_failures_total',
    help: 'Requests to the dashboard with a wrong user or password.',
    registers: [registry],
  });
  return { registry, failures };
}

/**
 * Requires this user and password (RFC 7617); other requests get 401. A guessing client gets 429 even with the right
 * password, so that no response shows which guess was right.
 *
 * Always compares hashes of both in constant time. The response time then reveals neither how much of a guess was right
 * nor the password's length.
 */
export function requireLogin(
  { user, password }: Login,
  failures: Counter,
  logger: Logger,
  limit = LIMIT,
): RequestHandler {
  const expected = { user: digest(user), password: digest(password) };
  const attempts = new FailedAttempts(limit);

  const isRight = (given: Login): boolean => {
    const isUser = timingSafeEqual(digest(given.user), expected.user);
    const isPassword = timingSafeEqual(digest(given.password), expected.password);
    return isUser && isPassword;
  };

  return async (request, response, next) => {
    const given = parseAuthorization(request.headers.authorization);
    const client = networkOf(request.ip ?? '');
    const right = given !== undefined && isRight(given);
    let waitMs = 0;
    if (right) waitMs = await attempts.waitMs(client);
    else if (given !== undefined) {
      failures.inc();
      const counted = await attempts.count(client);
      waitMs = counted.isRefused ? counted.waitMs : 0;
      if (counted.isLast) {
        const fields = { client, failures: limit.points, waitMs: counted.waitMs };
        logger.warn(fields, 'wrong passwords for the dashboard; client has to wait');
      }
    }
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1_000);
      response.status(429).set('Retry-After', String(seconds)).type('text');
      response.send(`Too many wrong passwords from here: try again in ${seconds} s.\n`);
    } else if (right) next();
    else {
      response.set('WWW-Authenticate', 'Basic realm="payouts", charset="UTF-8"');
      response.status(401).type('text').send('Sign in with the user and password of the dashboard.\n');
    }
  };
}

/** Counts wrong passwords per client, so an attacker locks out no other client. */
export class FailedAttempts {
  readonly #limiter: RateLimiterMemory;
  readonly #clients = new Set<string>();

  constructor(limit: { readonly points: number; readonly duration: number }) {
    this.#limiter = new RateLimiterMemory(limit);
  }

  /** How long the client must wait before a right password works, in ms. */
  async waitMs(client: string): Promise<number> {
    const state = await this.#limiter.get(client);
    return state !== null && state.remainingPoints <= 0 ? state.msBeforeNext : 0;
  }

  async count(
    client: string,
  ): Promise<{ readonly isRefused: boolean; readonly isLast: boolean; readonly waitMs: number }> {
    this.#clients.delete(client);
    this.#clients.add(client);
    const [oldest] = this.#clients;
    if (this.#clients.size > MAX_CLIENTS && oldest !== undefined) {
      this.#clients.delete(oldest);
      await this.#limiter.delete(oldest);
    }
    try {
      const { remainingPoints, msBeforeNext } = await this.#limiter.consume(client);
      return { isRefused: false, isLast: remainingPoints === 0, waitMs: msBeforeNext };
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return { isRefused: true, isLast: false, waitMs: refusal.msBeforeNext };
    }
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Undefined without credentials, as in a browser's first request, which is no try. */
function parseAuthorization(header: Request['headers']['authorization']): Login | undefined {
  const [, encoded] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon === -1 ? { user: '', password: '' } : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

const IPV6_GROUPS = 8;
const NETWORK_GROUPS = 4;

/** An address's client: for IPv6 the /64 network, since one host has all its addresses. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined || !isIPv6(plain)) return mapped ?? plain;
  const [start = [], end = []] = plain.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(Math.max(0, IPV6_GROUPS - start.length - end.length)).fill('0');
  const groups = [...start, ...zeros, ...end].slice(0, NETWORK_GROUPS);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
