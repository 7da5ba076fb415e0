import http from 'node:http';
import https from 'node:https';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../clock.js';
import { describeFailure } from './errors.js';
import type { GuardedSocket } from './guarded-socket.js';
import { postForm } from './post-form.js';
import type { RawResponse } from './response.js';

/** How one exchange over a prepared connection ended. */
export type Exchange =
  | { readonly kind: 'responded'; readonly response: RawResponse; readonly durationMs: number }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string; readonly durationMs: number };

export interface ExchangeOptions {
  readonly url: string;
  readonly body: string;
  /** From the first byte of the request to the last of the response. */
  readonly timeoutMs: number;
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
}

/**
 * Posts a form over a prepared connection, and uses the connection up; never rejects.
 *
 * `not_sent` or `lost` is decided by what the socket did, not by the error.
 */
export async function exchangeOnce(socket: GuardedSocket, options: ExchangeOptions): Promise<Exchange> {
  const { url, body, timeoutMs, mayWrite, clock } = options;
  let writtenAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  socket.allowWrite(() => {
    if (!mayWrite()) return false;
    writtenAtMs = clock.now();
    timer = setTimeout(() => socket.destroy(new Error(`no complete response within ${timeoutMs} ms`)), timeoutMs);
    return true;
  });

  // Two turns of the event loop include one poll for everything that has already reached this machine. A connection
  // that the gateway closed while the caller wrote to its disk is detected here, while it is still harmless.
  await nextTurn();
  await nextTurn();

  // Node's HTTP code drops a request whose response switches protocols (HTTP 101): it closes the socket and reports
  // nothing. A closed socket therefore ends the wait in any case, one turn later, when any complete response was delivered.
  const gone = new AbortController();
  socket.once('close', () =>
    setImmediate(() => {
      gone.abort();
    }),
  );

  const agent = agentFor(socket, url);
  try {
    const response = await postForm(url, body, agent, gone.signal);
    return { kind: 'responded', response, durationMs: clock.now() - writtenAtMs };
  } catch (error) {
    const failure = gone.signal.aborted ? new Error('the connection was closed without a response') : error;
    const reason = describeFailure(socket.errored ?? failure);
    socket.destroy(new Error(reason));
    if (!socket.written) return { kind: 'not_sent', reason };
    return { kind: 'lost', reason, durationMs: clock.now() - writtenAtMs };
  } finally {
    clearTimeout(timer);
    socket.destroy();
    agent.destroy();
  }
}

/** An agent with this one connection and no other. */
function agentFor(socket: GuardedSocket, url: string): http.Agent {
  const agent = url.startsWith('https:') ? new https.Agent() : new http.Agent();
  // The agent of either protocol accepts any stream as a connection; TLS, if any, is already done.
  agent.createConnection = () => {
    // A connection that is already closed emits no second event, and the HTTP code would wait for it without end.
    if (!socket.usable) throw socket.errored ?? new Error('the connection was already used or closed');
    return socket;
  };
  return agent;
}
