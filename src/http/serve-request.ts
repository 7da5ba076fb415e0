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

export function createDoor(door: Door): RequestListener {
  const limits = new Limits();
  const streams = new Map<string, number>();
  const openApi = { status: 200, body: renderOpenApi() };

  const answer = async (
    request: IncomingMessage,
    response: ServerResponse,
    found: Found,
  ): Promise<Reply | undefined> => {
    const reason = door.refuse(request);
    if (reason !== undefined) throw new RefusedError('FORBIDDEN', reason);
    if (found.kind === 'openapi') return openApi;
    if (found.kind === 'none') throw found.error;
    const { route, payoutId } = found;
    const token = authorize(door.tokens, request, route);
    const account = door.accounts.get(token.account);
    // Only served accounts are in the file of tokens.
    if (account === undefined) throw new Error(`account ${token.account} is not served`);
    await limits.take(token, 1);
    const query = found.query === '' ? {} : parseInput(route.query, readQuery(found.query));
    const body = route.method === 'POST' ? await readJson(request) : undefined;
    if (Array.isArray(body) && body.length > 1) await limits.take(token, body.length - 1);
    const stream: Call['stream'] = async (run) => {
      const open = streams.get(token.name) ?? 0;
      if (open >= MAX_STREAMS) {
        const message = `${token.name} has ${MAX_STREAMS} open event streams: close one, or use one for all its readers`;
        throw new RefusedError('RATE_LIMITED', message, { 'retry-after': '10' });
      }
      streams.set(token.name, open + 1);
      door.metrics.streams.inc();
      try {
        await run(response, door.closed);
      } finally {
        streams.set(token.name, (streams.get(token.name) ?? 1) - 1);
        door.metrics.streams.dec();
      }
      return undefined;
    };
    const isAllowed = (): boolean => door.tokens.has(token, route.right);
    const header = request.headers['last-event-id'];
    const lastEventId = Array.isArray(header) ? header[0] : header;
    const reply = await route.handle({ account, token, payoutId, query, body, lastEventId, stream, isAllowed });
    if (route.method === 'POST') {
      const what = Array.isArray(body) ? { payouts: body.length } : { payoutId: payoutId || payoutIdOf(body) };
      const fields = { by: token.name, platformId: token.account, status: reply?.status, ...what };
      // A line for each payout would cost as much as the payout.
      if (route.right === 'enqueue' && !Array.isArray(body)) door.logger.debug(fields, route.path);
      else door.logger.info(fields, route.path);
    }
    return reply;
  };

  return (request, response) => {
    const startedAt = performance.now();
    const found = find(request);
    const label = found.kind === 'route' ? `${found.route.method} ${found.route.path}` : found.kind;
    answer(request, response, found)
      .catch((error: unknown) => toReply(error, door.logger, label))
      .then((reply) => {
        door.metrics.count(label, reply?.status ?? response.statusCode);
        if (reply === undefined) return;
        write(request, response, reply, door.closed.aborted);
        door.metrics.observe(label, (performance.now() - startedAt) / 1_000);
      })
      .catch((error: unknown) => {
        door.logger.error({ error: (error as Error).message }, 'a response could not be written');
        response.destroy();
      });
  };
}

type Found =
  | { readonly kind: 'route'; readonly route: Route; readonly payoutId: string; readonly query: string }
  | { readonly kind: 'openapi' }
  | { readonly kind: 'none'; readonly error: RefusedError };

const PATTERNS = ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace('{payoutId}', '([^/]+)')}$`),
}));

function find({ method, url = '' }: IncomingMessage): Found {
  const [path = '', query = ''] = url.split('?', 2);
  if (path === '/openapi.json' && method === 'GET') return { kind: 'openapi' };
  const allowed: string[] = path === '/openapi.json' ? ['GET'] : [];
  for (const { route, pattern } of PATTERNS) {
    const match = pattern.exec(path);
    if (match === null) continue;
    allowed.push(route.method);
    if (route.method !== method) continue;
    const payoutId = decode(match[1] ?? '');
    if (payoutId === undefined) {
      return { kind: 'none', error: new RefusedError('NO_SUCH_ROUTE', 'The path is not percent-encoded UTF-8') };
    }
    return { kind: 'route', route, payoutId, query };
  }
  const error =
    allowed.length > 0
      ? new RefusedError('METHOD_NOT_ALLOWED', `Use ${allowed.join(' or ')}`, { allow: allowed.join(', ') })
      : new RefusedError('NO_SUCH_ROUTE', 'There is no such path; /openapi.json has all');
  return { kind: 'none', error };
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
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

const MINUTE_S = 60;

/** Tokens of one name share a limit, so that changing the token does not raise it. */
class Limits {
  readonly #limiters = new Map<string, { readonly perMinute: number; readonly limiter: RateLimiterMemory }>();

  /** @throws RefusedError if the minute has no room for it */
  async take({ name, account, perMinute }: TokenEntry, points: number): Promise<void> {
    if (perMinute === undefined) return;
    const key = `${account} ${name}`;
    let known = this.#limiters.get(key);
    if (known?.perMinute !== perMinute) {
      known = { perMinute, limiter: new RateLimiterMemory({ points: perMinute, duration: MINUTE_S }) };
      this.#limiters.set(key, known);
    }
    try {
      await known.limiter.consume(key, points);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1_000));
      const message = `${name} may send ${perMinute} requests and payouts a minute: try again in ${seconds} s`;
      throw new RefusedError('RATE_LIMITED', message, { 'retry-after': String(seconds) });
    }
  }
}

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

const utf8 = new TextDecoder('utf-8', { fatal: true });

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
      resolve(chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks));
    });
    request.once('error', reject);
    request.once('close', () => {
      // Each request is closed, also after its end: an error would be made for nothing.
      if (!request.complete) reject(new InvalidInputError([{ field: 'body', message: 'ended before its end' }]));
    });
  });
}

function payoutIdOf(body: unknown): unknown {
  return (body as { readonly payoutId?: unknown }).payoutId;
}

function toReply(error: unknown, logger: Logger, label: string): Reply {
  const problem = describeProblem(error);
  if (problem !== undefined) return problem;
  if (error instanceof RangeError && error.message.startsWith('Maximum call stack')) {
    const problems = [{ field: 'body', message: 'is nested too deeply' }];
    return toProblemReply('INVALID_INPUT', 400, 'body: is nested too deeply', { problems });
  }
  logger.error({ route: label, error: (error as Error).stack ?? String(error) }, 'a request failed');
  return toProblemReply('INTERNAL', 500, 'The door failed; its log has the reason. Asking again is safe');
}

function write(request: IncomingMessage, response: ServerResponse, reply: Reply, isClosing: boolean): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { status, body, headers = {} } = reply;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // What is left of a body would be read as the next request.
    ...(isClosing || !request.complete ? { connection: 'close' } : {}),
    ...headers,
  });
  response.end(text);
}
