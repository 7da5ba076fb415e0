/** For who writes a gateway of their own: docs/own-gateway.md. */
import { systemClock } from '../base/clock.js';
import { failsafeLogger, type Logger, silentLogger } from '../base/logger.js';
import { CONNECT_WITHIN_MS } from '../base/settings.js';
import { openSocket } from './exchange/socket.js';
import { createWithdrawConnection, type WithdrawDialect } from './exchange/withdraw-connection.js';
import type { WithdrawConnection } from './gateway.js';

export type { SignedRequest } from './exchange/exchange-once.js';
export type { RawResponse } from './exchange/responses.js';
export type { PreparedWithdrawal, WithdrawClassification, WithdrawDialect } from './exchange/withdraw-connection.js';
export {
  type Balance,
  type BalanceList,
  type ComparedPayment,
  type Currency,
  type CurrencyList,
  describeStop,
  type EventMessage,
  type EventReading,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
  type OwnGateway,
  type PaymentDifference,
  type PaymentStatus,
  type SentOutcome,
  type StopClass,
  type StopSign,
  type WithdrawConnection,
  type WithdrawOutcome,
  type WithdrawRequest,
} from './gateway.js';
export type { Logger } from '../base/logger.js';

/** Where withdrawals go, and their time limits. */
export interface WithdrawConnectionOptions {
  /** https, or http on loopback only; a path is kept. */
  readonly baseUrl: string;
  /** For a response, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number | undefined;
  /** For DNS, TCP and TLS together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number | undefined;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** @defaultValue a silent logger */
  readonly logger?: Logger | undefined;
}

/**
 * Opens a connection for one withdrawal: it asks for permission in the step that writes the first byte, knows whether a
 * byte may have left, and resets what got no clear answer. Use it for `openConnection` of a gateway of your own.
 * @throws GatewayUnavailableError if DNS, TCP, TLS or the time limit fails, or the signal aborts
 */
export async function openWithdrawConnection(
  { baseUrl, withdrawTimeoutMs = 60_000, connectTimeoutMs = CONNECT_WITHIN_MS, ca, logger }: WithdrawConnectionOptions,
  dialect: WithdrawDialect,
  signal: AbortSignal,
): Promise<WithdrawConnection> {
  const socket = await openSocket(new URL(baseUrl), { connectTimeoutMs, ca }, signal);
  const access = { baseUrl: baseUrl.replace(/\/$/, ''), withdrawTimeoutMs, clock: systemClock };
  return createWithdrawConnection(socket, { ...access, logger: failsafeLogger(logger ?? silentLogger) }, dialect);
}
