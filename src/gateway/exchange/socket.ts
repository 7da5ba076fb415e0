import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { connectionResendsForMs, readKernelRetries } from '../../base/kernel-resend.js';
import { lookUpGateway, names } from '../../base/look-up.js';
import { describeFailure, GatewayUnavailableError, type WithdrawConnection } from '../gateway.js';

export interface OpenSocket {
  readonly stream: Socket;
  readonly transport: Socket;
  /** See {@link WithdrawConnection.resendsForMs}. */
  readonly resendsForMs: WithdrawConnection['resendsForMs'];
}

/**
 * Connects to the host of a URL, for https including the verified TLS handshake. Sends nothing else.
 * @param connectTimeoutMs - for name resolution, TCP and TLS together
 * @throws GatewayUnavailableError
 */
export async function openSocket(
  url: URL,
  { connectTimeoutMs, ca }: { readonly connectTimeoutMs: number; readonly ca?: string | undefined },
  signal: AbortSignal,
): Promise<OpenSocket> {
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

  const startedAt = performance.now();
  const port = Number(url.port || (secure ? 443 : 80));
  // Half open: Node would answer the gateway's end by closing, before anyone can reset. TLS takes this over.
  const transport = neverThrow(connect({ host, port, noDelay: true, allowHalfOpen: true, lookup: lookUpGateway }));
  transport.once('lookup', () => (isFound = true));
  try {
    await once(transport, 'connect', { signal: attempt.signal });
    const toOpenSocket = (stream: Socket): OpenSocket => ({
      ...{ stream, transport },
      resendsForMs: connectionResendsForMs(
        { remoteAddress: transport.remoteAddress, connectedInMs: performance.now() - startedAt },
        readKernelRetries(),
      ),
    });
    if (!secure) return toOpenSocket(transport);
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
    return toOpenSocket(tls);
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

type Callback = (error?: Error | null) => void;

/**
 * A connected socket that writes nothing before it has permission, and then allows one exchange.
 *
 * axios and Node run microtasks and ticks between "send" and the first byte. So permission is requested here, in the
 * same synchronous step as the real write. `written` is set in that step too: it alone records whether a byte may have
 * left. Error codes do not (ECONNRESET fits both).
 */
export class GuardedSocket extends Duplex {
  readonly #socket: OpenSocket;
  #guard: () => boolean = () => false;
  #written = false;
  #isAnswered = false;
  #ended = false;

  constructor(socket: OpenSocket) {
    super({ autoDestroy: false });
    this.#socket = socket;
    // Before the exchange and after its release by the HTTP code, there is no other listener.
    this.on('error', () => undefined);
    const { stream } = socket;
    stream.on('data', (chunk: Buffer) => {
      this.#receive(chunk);
    });
    stream.on('end', () => {
      this.#receiveEnd();
    });
    stream.on('error', (error) => this.destroy(error));
    stream.on('close', () => {
      if (!this.#ended) this.destroy(new Error('the connection was closed'));
    });
    if (stream.destroyed) this.destroy(new Error('the connection was closed'));
  }

  /** Open, unused, and nothing received. */
  get usable(): boolean {
    return !this.#written && !this.destroyed && this.#socket.stream.writable;
  }

  /** See {@link WithdrawConnection.resendsForMs}. */
  get resendsForMs(): number {
    return this.#socket.resendsForMs;
  }

  get written(): boolean {
    return this.#written;
  }

  /** @param guard - called once, directly before the first byte; false writes nothing and destroys this socket */
  allowWrite(guard: () => boolean): void {
    this.#guard = guard;
  }

  /** Node's HTTP code calls it on every socket. The exchange has its own time limit, not an idle timeout. */
  setTimeout(): this {
    return this;
  }

  #receive(chunk: Buffer): void {
    if (!this.#written) this.destroy(new Error('the gateway sent something before the request'));
    else if (!this.push(chunk)) this.#socket.stream.pause();
  }

  #receiveEnd(): void {
    this.#ended = true;
    if (this.#written) this.push(null);
    else this.destroy(new Error('the gateway closed the connection before the request'));
  }

  override _read(): void {
    this.#socket.stream.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (!this.#written) {
      const refusal = this.#askGuard();
      if (refusal !== undefined) {
        this.destroy(refusal);
        callback(refusal);
        return;
      }
      this.#written = true;
    }
    this.#socket.stream.write(chunk, callback);
  }

  #askGuard(): Error | undefined {
    if (!this.usable) return new Error('the connection was closed');
    try {
      return this.#guard() ? undefined : new Error('permission to write was refused');
    } catch (error) {
      return new Error(`permission to write could not be determined: ${describeFailure(error)}`);
    }
  }

  /** Writes head and body as one piece. */
  override _writev(chunks: { chunk: Buffer }[], callback: Callback): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'binary', callback);
  }

  /** The HTTP code ends its side after a response, before anyone has read it. The connection stays until it is classified. */
  override _final(callback: Callback): void {
    callback();
  }

  /** Call it once the gateway's own response shows that it has the request: there is nothing left to reset. */
  markAnswered(): void {
    this.#isAnswered = true;
  }

  /**
   * A TCP reset drops what the kernel would send again. To close would leave that to the kernel, even for a request that
   * was never received, as after an HTTP 408 or a response that ends too early.
   */
  override _destroy(error: Error | null, callback: Callback): void {
    const { stream, transport } = this.#socket;
    // Only the TCP socket below a TLS socket can be reset.
    if (this.#written && !this.#isAnswered) transport.resetAndDestroy();
    stream.destroy();
    transport.destroy();
    callback(error);
  }
}
