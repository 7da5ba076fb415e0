import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { lookUpGateway, names } from '../look-up.js';
import { describeFailure, GatewayUnavailableError } from './errors.js';

export interface OpenSocket {
  readonly stream: Socket;
  readonly transport: Socket;
}

export interface OpenSocketOptions {
  /** For name resolution, TCP and TLS together. */
  readonly connectTimeoutMs: number;
  readonly ca?: string;
  readonly signal: AbortSignal;
}

/**
 * Connects to the host of a URL, for https including the verified TLS handshake. Sends nothing else.
 * @throws GatewayUnavailableError
 */
export async function openSocket(url: URL, { connectTimeoutMs, ca, signal }: OpenSocketOptions): Promise<OpenSocket> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'https:';
  const attempt = new AbortController();
  const onAbort = () => {
    attempt.abort(new Error('aborted by the caller'));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  let isFound = isIP(host) !== 0;
  const timer = setTimeout(() => {
    const what = isFound ? 'not connected' : `the name ${host} was not resolved`;
    attempt.abort(new Error(`${what} within ${connectTimeoutMs} ms`));
  }, connectTimeoutMs);

  const port = Number(url.port || (secure ? 443 : 80));
  const transport = neverThrow(connect({ host, port, noDelay: true, lookup: lookUpGateway }));
  transport.once('lookup', () => (isFound = true));
  try {
    await once(transport, 'connect', { signal: attempt.signal });
    if (!secure) return { stream: transport, transport };
    const tls = connectTls({
      socket: transport,
      host,
      // A server name must not be an address (RFC 6066, section 3).
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca }),
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
    });
    await once(neverThrow(tls), 'secureConnect', { signal: attempt.signal });
    return { stream: tls, transport };
  } catch (error) {
    transport.destroy();
    if (isFound && !signal.aborted) names.forget(host);
    const reason: unknown = attempt.signal.aborted ? attempt.signal.reason : error;
    throw new GatewayUnavailableError(`No connection to the gateway at ${url.origin}: ${describeFailure(reason)}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** An error event without a listener would end the process. The error destroys the socket anyway. */
function neverThrow<AnySocket extends Socket>(socket: AnySocket): AnySocket {
  return socket.on('error', () => undefined);
}
