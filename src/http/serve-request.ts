import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { z } from 'zod';
import { InvalidInputError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import type { Logger } from '../base/logger.js';
import { parseJson } from '../base/parse-json.js';
import { toPlainJson } from '../base/plain-text.js';
import { streamEvents } from './event-stream.js';
import { renderOpenApi } from './openapi.js';
import { describeProblem, RefusedError, type Reply } from './problem.js';
import { type Call, type DoorAccount, type Route, ROUTES } from './routes.js';
import type { TokenEntry, Tokens } from './tokens.js';

/** From a request to its response: who asks, whether they may, and the one place that writes replies. */

const MAX_BODY_BYTES = 1_048_576;
/** Of one token's name in its account. */
const MAX_STREAMS = 20;

/** Labels are routes and status codes: a client cannot invent new ones. */
export class HttpMetrics {
  readonly registry = new Registry();
  readonly streams = new Gauge({
    name: 'payouts_http_streams',
    help: 'Open event streams.',
    registers: [this.registry],
  });
  readonly tokensStale = new Gauge({
    name: 'payouts_http_tokens_stale',
    help: '1 while the file of tokens cannot be read again: the tokens before it still count.',
    registers: [this.registry],
  });
  readonly requests = new Counter({
    name: 'payouts_http_requests_total',
    help: 'Requests by route and status code.',
    labelNames: ['route', 'status'],
    registers: [this.registry],
  });
  readonly seconds = new Histogram({
    name: 'payouts_http_request_seconds',
    help: 'Time from the headers of a request to its response, by route. Event streams are not counted.',
    labelNames: ['route'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [this.registry],
  });
}

interface Door {
  readonly accounts: ReadonlyMap<number, DoorAccount>;
  readonly tokens: Tokens;
  readonly metrics: HttpMetrics;
  readonly logger: Logger;
  /** @returns why the connection may not carry a token, undefined if it may */
  readonly refuse: (request: IncomingMessage) => string | undefined;
  readonly closed: AbortSignal;
}

export function createDoor({ accounts, tokens, metrics, logger, refuse, closed }: Door): RequestListener {
  const limiters = new Map<number, RateLimiterMemory>();
  const streams = new Map<string, number>();
  const openApi = { status: 200, body: renderOpenApi() };

  /** Tokens of one name share a limit, so that changing the token does not raise it. */
  const takeLimit = async ({ name, account, perMinute }: TokenEntry, points: number): Promise<void> => {
    if (perMinute === undefined) return;
    const limiter = limiters.get(perMinute) ?? new RateLimiterMemory({ points: perMinute, duration: 60 });
    limiters.set(perMinute, limiter);
    await limiter.consume(`${account} ${name}`, points).catch((refusal: unknown) => {
      const seconds = String(Math.max(1, Math.ceil((refusal as RateLimiterRes).msBeforeNext / 1_000)));
      const message = `${name} may send ${perMinute} requests and payouts a minute: try again in ${seconds} s`;
      throw new RefusedError('RATE_LIMITED', message, { 'retry-after': seconds });
    });
  };

  const openStream = async ({ name, account }: TokenEntry, run: () => Promise<void>): Promise<undefined> => {
    const key = `${account} ${name}`;
    const open = streams.get(key) ?? 0;
    if (open >= MAX_STREAMS) {
      const message = `${name} has ${MAX_STREAMS} open event streams: close one, or use one for all its readers`;
      throw new RefusedError('RATE_LIMITED', message, { 'retry-after': '10' });
    }
    streams.set(key, open + 1);
    metrics.streams.inc();
    try {
      await run();
    } finally {
      streams.set(key, (streams.get(key) ?? 1) - 1);
      metrics.streams.dec();
    }
  };

  const answer = async (request: IncomingMessage, response: ServerResponse, found: ReturnType<typeof find>) => {
    const reason = refuse(request);
    if (reason !== undefined) throw new RefusedError('FORBIDDEN', reason);
    const { route, payoutId } = found;
    if (route === undefined) throw refuseRoute(found.allowed);
    if (!('handle' in route)) return openApi;
    const token = authorize(tokens, request, route);
    const account = accounts.get(token.account);
    // Only served accounts are in the file of tokens.
    if (account === undefined) throw new Error(`account ${token.account} is not served`);
    await takeLimit(token, 1);
    const query = found.query === '' ? {} : parseInput(route.query ?? NO_QUERY, readQuery(found.query));
    const body = route.method === 'POST' ? await readJson(request) : undefined;
    const count = Array.isArray(body) ? body.length : undefined;
    if (count !== undefined && count > 1) await takeLimit(token, count - 1);
    const isAllowed = (): boolean => tokens.has(token, route.right);
    const stream: Call['stream'] = async (after) =>
      openStream(token, async () => streamEvents({ ...account, response, after, signal: closed, isAllowed }));
    const lastEventId = request.headers['last-event-id']?.toString();
    const reply = await route.handle({ account, token, payoutId, query, body, lastEventId, stream });
    if (route.method === 'POST') {
      const what =
        count === undefined ? { payoutId: payoutId || (body as { payoutId: string }).payoutId } : { payouts: count };
      // A line for each payout would cost as much as the payout.
      const level = route.right === 'enqueue' && count === undefined ? 'debug' : 'info';
      logger[level]({ by: token.name, platformId: token.account, status: reply?.status, ...what }, route.path);
    }
    return reply;
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedAt = performance.now();
    const found = find(request);
    const route = found.route === undefined ? 'none' : `${found.route.method} ${found.route.path}`;
    const reply = await answer(request, response, found).catch((error: unknown) =>
      describeProblem(error, logger, route),
    );
    metrics.requests.inc({ route, status: reply?.status ?? response.statusCode });
    if (reply === undefined) return;
    write(request, response, reply, closed.aborted);
    metrics.seconds.observe({ route }, (performance.now() - startedAt) / 1_000);
  };

  return (request, response) => {
    serve(request, response).catch((error: unknown) => {
      logger.error({ error: (error as Error).message }, 'a response could not be written');
      response.destroy();
    });
  };
}

const NO_QUERY = z.strictObject({});

type OpenApiRoute = Pick<Route, 'method' | 'path'>;
const ALL: readonly (Route | OpenApiRoute)[] = [...ROUTES, { method: 'GET', path: '/openapi.json' }];

function find({ method, url = '' }: IncomingMessage) {
  const [path = '', query = ''] = url.split('?', 2);
  let payoutId = '';
  let template: string | undefined;
  try {
    template = path.replace(/(?<=^\/v1\/payouts\/)[^/]+/, (id) => {
      payoutId = decodeURIComponent(id);
      return '{payoutId}';
    });
  } catch {
    // It is not percent-encoded UTF-8, and names no route.
  }
  const here = ALL.filter((route) => route.path === template);
  const route = here.find((each) => each.method === method);
  return { route, payoutId, query, allowed: here.map((each) => each.method) };
}

function refuseRoute(allowed: readonly string[]): RefusedError {
  return allowed.length === 0
    ? new RefusedError('NO_SUCH_ROUTE', 'There is no such path, or it is not percent-encoded; /openapi.json has all')
    : new RefusedError('METHOD_NOT_ALLOWED', `Use ${allowed.join(' or ')}`, { allow: allowed.join(', ') });
}

/** A name given twice becomes a list, which no rule takes. */
function readQuery(text: string): Record<string, unknown> {
  const query = new Map<string, unknown>();
  for (const [name, value] of new URLSearchParams(text)) query.set(name, query.has(name) ? [] : value);
  return Object.fromEntries(query);
}

function authorize(tokens: Tokens, { headers }: IncomingMessage, { right }: Route): TokenEntry {
  const token = tokens.find(headers.authorization);
  if (token === undefined) {
    const message = 'Send the header `Authorization: Bearer TOKEN` with a token of the door';
    throw new RefusedError('UNAUTHORIZED', message, { 'www-authenticate': 'Bearer realm="payouts"' });
  }
  if (token.rights.includes(right)) return token;
  throw new RefusedError('FORBIDDEN', `The token of ${token.name} has no right to ${right}`);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @returns undefined without a body. @throws RefusedError, InvalidInputError */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const bytes = await readBody(request);
  if (bytes.length === 0) return undefined;
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!isJson(type) || encoding !== 'identity') {
    throw new RefusedError('NOT_JSON', 'Send JSON: `Content-Type: application/json`, UTF-8, not compressed');
  }
  return parseJson(decode(bytes), 'body');
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new InvalidInputError([{ field: 'body', message: 'is no text in UTF-8' }]);
  }
}

/** Without a pattern that tries the spaces of a long header in every way. */
function isJson(type: string): boolean {
  const [media = '', charset, ...others] = type.split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = charset === undefined || charset === 'charset=utf-8' || charset === 'charset="utf-8"';
  return media === 'application/json' && isUtf8 && others.length === 0;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const rejectCut = (): void => {
      if (!request.complete) reject(new InvalidInputError([{ field: 'body', message: 'ended before its end' }]));
    };
    request
      .on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_BODY_BYTES) chunks.push(chunk);
        else reject(new RefusedError('TOO_LARGE', `The body has over ${MAX_BODY_BYTES} bytes: send fewer payouts`));
      })
      .on('end', () => {
        resolve(Buffer.concat(chunks));
      })
      .on('error', rejectCut)
      .on('close', rejectCut);
  });
}

function write(request: IncomingMessage, response: ServerResponse, reply: Reply, isClosing: boolean): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const text = toPlainJson(reply.body);
  response.writeHead(reply.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // What is left of a body would be read as the next request.
    ...(isClosing || !request.complete ? { connection: 'close' } : {}),
    ...reply.headers,
  });
  response.end(text);
}
