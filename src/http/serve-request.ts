import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { InvalidInputError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import type { Logger } from '../base/logger.js';
import type { HttpMetrics } from './http-metrics.js';
import { renderOpenApi } from './openapi.js';
import { describeProblem, RefusedError, type Reply, toProblemReply } from './problem.js';
import { type Call, type DoorAccount, type Route, ROUTES } from './routes.js';
import type { TokenEntry, Tokens } from './tokens.js';

/** From a request to its response: who asks, whether he may, what he says, and the one place that writes replies. */

/** A thousand payouts of usual size; fewer with large metadata. */
const MAX_BODY_BYTES = 1_048_576;
/** Of one token's name. */
const MAX_STREAMS = 20;

interface Door {
  readonly accounts: ReadonlyMap<number, DoorAccount>;
  readonly tokens: Tokens;
  readonly metrics: HttpMetrics;
  readonly logger: Logger;
  /** @returns why the connection may not carry a token, undefined if it may */
  readonly refuse: (request: IncomingMessage) => string | undefined;
  /** Ends streams, and connections after their response. */
  readonly closed: AbortSignal;
}

export function createDoor({ accounts, tokens, metrics, logger, refuse, closed }: Door): RequestListener {
  const takeLimit = createLimits();
  const streams = new Map<string, number>();
  const openApi = { status: 200, body: renderOpenApi() };

  const openStream = async (name: string, run: () => Promise<void>): Promise<undefined> => {
    const open = streams.get(name) ?? 0;
    if (open >= MAX_STREAMS) {
      const message = `${name} has ${MAX_STREAMS} open event streams: close one, or use one for all its readers`;
      throw new RefusedError('RATE_LIMITED', message, { 'retry-after': '10' });
    }
    streams.set(name, open + 1);
    metrics.streams.inc();
    try {
      await run();
    } finally {
      streams.set(name, (streams.get(name) ?? 1) - 1);
      metrics.streams.dec();
    }
  };

  const answer = async (request: IncomingMessage, response: ServerResponse, found: Found) => {
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
    const query = found.query === '' ? {} : parseInput(route.query, readQuery(found.query));
    const body = route.method === 'POST' ? await readJson(request) : undefined;
    if (Array.isArray(body) && body.length > 1) await takeLimit(token, body.length - 1);
    const stream: Call['stream'] = async (run) => openStream(token.name, async () => run(response, closed));
    const isAllowed = (): boolean => tokens.has(token, route.right);
    const lastEventId = request.headers['last-event-id']?.toString();
    const reply = await route.handle({ account, token, payoutId, query, body, lastEventId, stream, isAllowed });
    if (route.method === 'POST') {
      const isList = Array.isArray(body);
      const what = isList
        ? { payouts: body.length }
        : { payoutId: payoutId || (body as { payoutId: string }).payoutId };
      const fields = { by: token.name, platformId: token.account, status: reply?.status, ...what };
      // A line for each payout would cost as much as the payout.
      logger[route.right === 'enqueue' && !isList ? 'debug' : 'info'](fields, route.path);
    }
    return reply;
  };

  return (request, response) => {
    const startedAt = performance.now();
    const found = find(request);
    const label = found.route === undefined ? 'none' : `${found.route.method} ${found.route.path}`;
    answer(request, response, found)
      .catch((error: unknown) => toReply(error, logger, label))
      .then((reply) => {
        metrics.count(label, reply?.status ?? response.statusCode);
        if (reply === undefined) return;
        write(request, response, reply, closed.aborted);
        metrics.observe(label, (performance.now() - startedAt) / 1_000);
      })
      .catch((error: unknown) => {
        logger.error({ error: (error as Error).message }, 'a response could not be written');
        response.destroy();
      });
  };
}

type OpenApiRoute = Pick<Route, 'method' | 'path'>;
const OPENAPI: OpenApiRoute = { method: 'GET', path: '/openapi.json' };

const PATTERNS = [...ROUTES, OPENAPI].map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace('{payoutId}', '([^/]+)')}$`),
}));

interface Found {
  readonly route: Route | OpenApiRoute | undefined;
  readonly payoutId: string;
  readonly query: string;
  /** The methods of this path. */
  readonly allowed: readonly string[];
}

function find({ method, url = '' }: IncomingMessage): Found {
  const [path = '', query = ''] = url.split('?', 2);
  const allowed: string[] = [];
  for (const { route, pattern } of PATTERNS) {
    const match = pattern.exec(path);
    const payoutId = match === null ? undefined : decode(match[1] ?? '');
    if (payoutId === undefined) continue;
    if (route.method === method) return { route, payoutId, query, allowed };
    allowed.push(route.method);
  }
  return { route: undefined, payoutId: '', query, allowed };
}

/** @returns undefined if it is not percent-encoded UTF-8 */
function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
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
    throw new RefusedError('UNAUTHORIZED', 'Send the header `Authorization: Bearer TOKEN` with a token of the door', {
      'www-authenticate': 'Bearer realm="payouts"',
    });
  }
  if (token.rights.includes(right)) return token;
  throw new RefusedError('FORBIDDEN', `The token of ${token.name} has no right to ${right}`);
}

/** Tokens of one name share a limit, so that changing the token does not raise it. */
function createLimits(): (token: TokenEntry, points: number) => Promise<void> {
  const limiters = new Map<number, RateLimiterMemory>();
  return async ({ name, account, perMinute }, points) => {
    if (perMinute === undefined) return;
    const limiter = limiters.get(perMinute) ?? new RateLimiterMemory({ points: perMinute, duration: 60 });
    limiters.set(perMinute, limiter);
    try {
      await limiter.consume(`${account} ${name}`, points);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1_000));
      const message = `${name} may send ${perMinute} requests and payouts a minute: try again in ${seconds} s`;
      throw new RefusedError('RATE_LIMITED', message, { 'retry-after': String(seconds) });
    }
  };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @returns undefined without a body. @throws RefusedError, InvalidInputError */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const bytes = await readBody(request);
  if (bytes.length === 0) return undefined;
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!/^application\/json *(; *charset="?utf-8"?)? *$/i.test(type) || encoding !== 'identity') {
    throw new RefusedError('NOT_JSON', 'Send JSON: `Content-Type: application/json`, UTF-8, not compressed');
  }
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch {
    // The parser's own message shows the text.
    throw new InvalidInputError([{ field: 'body', message: 'is no JSON in UTF-8' }]);
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_BODY_BYTES) chunks.push(chunk);
      else reject(new RefusedError('TOO_LARGE', `The body has more than ${MAX_BODY_BYTES} bytes: send fewer payouts`));
    });
    request.once('end', () => {
      resolve(Buffer.concat(chunks));
    });
    request.once('error', reject);
    request.once('close', () => {
      // Each request is closed, also after its end: an error would be made for nothing.
      if (!request.complete) reject(new InvalidInputError([{ field: 'body', message: 'ended before its end' }]));
    });
  });
}

function toReply(error: unknown, logger: Logger, label: string): Reply {
  const isTooDeep = error instanceof RangeError && error.message.startsWith('Maximum call stack');
  const known = isTooDeep ? new InvalidInputError([{ field: 'body', message: 'is nested too deeply' }]) : error;
  const problem = describeProblem(known);
  if (problem !== undefined) return problem;
  logger.error({ route: label, error: (error as Error).stack ?? String(error) }, 'a request failed');
  return toProblemReply('INTERNAL', 'The door failed; its log has the reason. Asking again is safe');
}

function write(request: IncomingMessage, response: ServerResponse, reply: Reply, isClosing: boolean): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const text = JSON.stringify(reply.body);
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
