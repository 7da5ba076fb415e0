import { TLSSocket } from 'node:tls';
import type { Clock } from '../../clock.js';
import { PayoutError } from '../../errors.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import { openSocket } from '../../gateway/open-socket.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
const CERTIFICATE_WARNING_DAYS = 14;

export interface ConnectionCheckOptions {
  readonly connectTimeoutMs: number;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string;
}

/** Whether the gateway can be reached; for https, whether its certificate is trusted and does not expire soon. */
export async function checkGatewayConnection(
  baseUrl: string,
  clock: Clock,
  options: ConnectionCheckOptions,
): Promise<CheckResult> {
  const name = 'gateway connection';
  try {
    const { stream, transport } = await openSocket(new URL(baseUrl), {
      ...options,
      signal: new AbortController().signal,
    });
    try {
      return stream instanceof TLSSocket
        ? judgeCertificate(name, stream, clock)
        : ok(name, 'reachable, without TLS since it is on this machine');
    } finally {
      transport.destroy();
    }
  } catch (error) {
    return problem(
      name,
      (error as Error).message,
      'Check GATEWAY_BASE_URL, name resolution and firewall; for a certificate of your own authority, NODE_EXTRA_CA_CERTS.',
    );
  }
}

function judgeCertificate(name: string, socket: TLSSocket, clock: Clock): CheckResult {
  const validTo = socket.getPeerCertificate().valid_to;
  const days = Math.floor((Date.parse(validTo) - clock.wallNow()) / DAY_MS);
  const detail = `reachable, ${socket.getProtocol() ?? 'TLS'}, certificate valid for ${days} days`;
  return days < CERTIFICATE_WARNING_DAYS
    ? warning(name, detail, 'Ask the operator of the gateway to renew it: without it nothing is sent.')
    : ok(name, detail);
}

/** Whether the gateway knows the account and accepts its signature. */
export async function checkGatewayAccount(gateway: Pick<GatewayClient, 'balance'>): Promise<CheckResult> {
  const name = 'gateway account';
  try {
    await gateway.balance();
    return ok(name, 'platform id and secret key are right: /balance responds');
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return problem(name, error.message, describeFix(error));
  }
}

function describeFix({ code }: PayoutError): string {
  switch (code) {
    case 'GATEWAY_REJECTED':
      return 'Check GATEWAY_PLATFORM_ID and GATEWAY_SECRET_KEY; if both are right, ask the gateway about the account.';
    case 'GATEWAY_INVALID_RESPONSE':
      return 'Check GATEWAY_BASE_URL: the server at that address is not the gateway.';
    default:
      return 'Try again later; if it persists, ask the operator of the gateway.';
  }
}

/** Whether the gateway lists its currencies. No send depends on it. */
export async function checkGatewayCurrencies(gateway: Pick<GatewayClient, 'currencies'>): Promise<CheckResult> {
  const name = 'gateway currencies';
  try {
    const { length } = await gateway.currencies();
    if (length > 0) return ok(name, `${length} currencies`);
    return warning(name, 'the list is empty', 'Ask the gateway which currencies the account may pay out.');
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return warning(name, error.message, 'Payouts can be sent all the same; ask the gateway if it persists.');
  }
}
