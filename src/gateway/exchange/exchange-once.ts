import http from 'node:http';
import type { Agent } from 'node:http';
import https from 'node:https';
import { setImmediate as nextTurn } from 'node:timers/promises';
import axios from 'axios';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { describeFailure } from '../gateway.js';
import { MAX_RESPONSE_BYTES, type RawResponse } from './responses.js';
import type { GuardedSocket } from './socket.js';

export type Exchange =
  | { readonly kind: 'responded'; readonly response: RawResponse; readonly durationMs: number }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string; readonly durationMs: number };

/** A signed request. */
export interface SignedRequest {
  readonly body: string;
  /** Of the body, and where the signature is one. */
  readonly headers: Readonly<Record<string, string>>;
  /** Removes the signature from a text, in case the gateway repeats it in an error message. */
  readonly redact: (text: string) => string;
}

/** An account's access to the gateway: what its calls share. Times are limits, in ms. */
export interface GatewayAccess {
  readonly baseUrl: string;
  /** A whole query. */
  readonly timeoutMs: number;
  /** A withdrawal, from the first byte of the request to the last of the response. */
  readonly withdrawTimeoutMs: number;
  /** DNS, TCP and TLS of a withdrawal together. */
  readonly connectTimeoutMs: number;
  readonly ca: string | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Posts a request over a prepared connection, once; never rejects. After a response the connection is still open: the
 * caller closes it, which resets it unless the response is clear.
 *
 * The socket's state decides between `not_sent` and `lost`, not the error.
 */
export async function exchangeOnce(
  socket: GuardedSocket,
  request: Posted,
  mayWrite: () => boolean,
  { withdrawTimeoutMs: timeoutMs, clock }: Pick<GatewayAccess, 'withdrawTimeoutMs' | 'clock'>,
): Promise<Exchange> {
  let writtenAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  socket.allowWrite(() => {
    if (!mayWrite()) return false;
    writtenAtMs = clock.now();
    timer = setTimeout(() => socket.destroy(new Error(`no complete response within ${timeoutMs} ms`)), timeoutMs);
    return true;
  });

  // Two turns include one poll for everything that has reached this machine. This detects a connection that the gateway
  // closed during the caller's disk write, before it does harm.
  await nextTurn();
  await nextTurn();

  // Node drops a request whose response switches protocols (HTTP 101): it closes the socket and reports nothing. So a
  // closed socket ends the wait, one turn after any complete response.
  const gone = new AbortController();
  socket.once('close', () =>
    setImmediate(() => {
      gone.abort();
    }),
  );

  const agent = agentFor(socket, request.url);
  try {
    const response = await post(request, agent, gone.signal);
    return { kind: 'responded', response, durationMs: clock.now() - writtenAtMs };
  } catch (error) {
    const failure = gone.signal.aborted ? new Error('the connection was closed without a response') : error;
    const reason = describeFailure(socket.errored ?? failure);
    socket.destroy(new Error(reason));
    if (!socket.written) return { kind: 'not_sent', reason };
    return { kind: 'lost', reason, durationMs: clock.now() - writtenAtMs };
  } finally {
    clearTimeout(timer);
  }
}

function agentFor(socket: GuardedSocket, url: string): http.Agent {
  const agent = url.startsWith('https:') ? new https.Agent() : new http.Agent();
  // Agents of both protocols accept any stream as a connection. TLS, if any, is already done.
  agent.createConnection = () => {
    // A closed connection emits no second event, so the HTTP code would wait forever.
    if (!socket.usable) throw socket.errored ?? new Error('the connection was already used or closed');
    return socket;
  };
  return agent;
}

// A separate instance, so that an application's interceptors and defaults for axios do not apply.
const client = axios.create();

interface Posted extends Pick<SignedRequest, 'body' | 'headers'> {
  readonly url: string;
}

/**
 * Posts a signed request once and returns the complete response as bytes.
 *
 * No redirects (a 307 would post again), no proxies from the environment. axios neither decompresses nor parses,
 * because it accepts cut-off gzip and broken text.
 * @throws Error without any content of the request, if no complete response came
 */
export async function post({ url, body, headers }: Posted, agent: Agent, signal?: AbortSignal): Promise<RawResponse> {
  try {
    const response = await client.request<Buffer>({
      method: 'POST',
      url,
      data: body,
      headers: {
        ...headers,
        Accept: 'application/json',
        'Accept-Encoding': 'gzip',
        'User-Agent': 'payout-queue',
      },
      adapter: 'http',
      httpAgent: agent,
      httpsAgent: agent,
      maxRedirects: 0,
      proxy: false,
      timeout: 0,
      responseType: 'arraybuffer',
      decompress: false,
      maxContentLength: MAX_RESPONSE_BYTES,
      transformRequest: [],
      validateStatus: () => true,
      ...(signal === undefined ? {} : { signal }),
    });
    return {
      status: response.status,
      contentEncoding: String(response.headers['content-encoding'] ?? ''),
      body: response.data,
    };
  } catch (error) {
    // Not as the cause: axios's error contains the request.
    throw new Error(describeFailure(error));
  }
}
