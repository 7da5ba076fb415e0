import { TLSSocket } from 'node:tls';
import { openSocket } from './socket.js';

/** How the gateway's host can be reached. */
export interface ExaminedConnection {
  /** Undefined without TLS. */
  readonly tls: { readonly protocol: string | undefined; readonly validTo: string } | undefined;
}

/**
 * Connects as a withdrawal does, and sends nothing.
 * @param ca - PEM certificates to trust instead of the system's
 * @throws GatewayUnavailableError
 */
export async function examineConnection(
  baseUrl: string,
  connectTimeoutMs: number,
  ca?: string,
): Promise<ExaminedConnection> {
  const limits = { connectTimeoutMs, ...(ca !== undefined && { ca }) };
  const { stream, transport } = await openSocket(new URL(baseUrl), limits, new AbortController().signal);
  try {
    if (!(stream instanceof TLSSocket)) return { tls: undefined };
    const protocol = stream.getProtocol() ?? undefined;
    return { tls: { protocol, validTo: stream.getPeerCertificate().valid_to } };
  } finally {
    transport.destroy();
  }
}
