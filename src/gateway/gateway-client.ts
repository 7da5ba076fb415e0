import { z } from 'zod';
import { untilAborted, type Clock } from '../clock.js';
import { baseUrlField, millisecondsField, parseInput, platformIdField } from '../fields.js';
import { failsafeLogger, type Logger } from '../logger.js';
import { ENDPOINTS, type Approve, type Currency, type PaymentWallet, type TransactionStatus } from './endpoints.js';
import { describeFailure, GatewayUnavailableError } from './errors.js';
import type { Gateway, PaymentStatus } from './gateway.js';
import { openSocket } from './open-socket.js';
import { createQueryClient } from './query-client.js';
import { createRequestSigner } from './request-signer.js';
import { createWithdrawConnection } from './withdraw-connection.js';
import type { WithdrawConnection, WithdrawOutcome, WithdrawRequest } from './withdraw-gateway.js';

/**
 * The gateway's HTTP API (docs/gateway-api.md) as one object.
 *
 * `/withdraw` moves money and cannot be repeated, so its outcome is a value with its certainty. The other four are
 * queries, and throw.
 */

/** The gateway's address, the account and the time limits. */
export interface GatewayClientOptions {
  /** https, or http on loopback only; a path is kept. */
  readonly baseUrl: string;
  readonly platformId: number;
  readonly secretKey: string;
  /** For a whole query. @defaultValue 30000 */
  readonly timeoutMs?: number;
  /** For a response to `/withdraw`, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number;
  /** For DNS, TCP and TLS of a withdrawal together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * The queries throw {@link InvalidInputError} if a request breaks a rule (nothing was sent), {@link
 * GatewayRejectedError}, {@link GatewayUnavailableError} or {@link GatewayInvalidResponseError}.
 */
export interface GatewayClient extends Gateway {
  /**
   * Connects, signs and sends at once, outside of any queue and its pace; never rejects. Two of these less than a
   * second apart block the account.
   */
  withdraw(request: WithdrawRequest): Promise<WithdrawOutcome>;
  /** Progress of a transaction, in the API's terms; `getStatus` returns it in the worker's. */
  transactionStatus(request: { readonly txhash: string }): Promise<TransactionStatus>;
  /** The deposit address of a currency for one of the platform's own identifiers. */
  getPaymentWallet(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /** The supported currencies with their USD rates, every field as it came. */
  currencies(): Promise<Currency[]>;
  /** The balance as it came: its structure is undefined (docs/gateway-api.md#open-points). */
  balance(): Promise<unknown>;
  /** Closes the idle query connections. Withdrawals under way continue. */
  close(): void;
}

const STATUS_KIND: Readonly<Record<Approve, PaymentStatus['kind']>> = { 0: 'pending', 1: 'paid', 2: 'failed' };

/** docs/gateway-api.md#limits */
const MIN_WITHDRAW_GAP_MS = 1_000;

const optionsSchema = z.object({
  baseUrl: baseUrlField,
  platformId: platformIdField,
  timeoutMs: millisecondsField(1).default(30_000),
  withdrawTimeoutMs: millisecondsField(1).default(60_000),
  connectTimeoutMs: millisecondsField(1).default(10_000),
});

/**
 * Makes a client of the gateway for one account.
 * @throws InvalidInputError if the base URL, the platform id or a time is not usable
 */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const { clock } = options;
  const logger = failsafeLogger(options.logger);
  const { baseUrl, platformId, timeoutMs, withdrawTimeoutMs, connectTimeoutMs } = parseInput(optionsSchema, options);
  const ca = options.ca === undefined ? {} : { ca: options.ca };
  const sign = createRequestSigner(platformId, options.secretKey);
  const queries = createQueryClient({ baseUrl, sign, timeoutMs, ...ca, logger, clock });
  const withdrawUrl = `${baseUrl}/${ENDPOINTS.withdraw.path}`;

  const client: GatewayClient = {
    capabilities: { minWithdrawGapMs: MIN_WITHDRAW_GAP_MS },
    async openConnection(signal) {
      const socket = await openSocket(new URL(withdrawUrl), { connectTimeoutMs, ...ca, signal });
      return createWithdrawConnection(socket, { url: withdrawUrl, sign, withdrawTimeoutMs, logger, clock });
    },
    async probe(signal) {
      const aborted = untilAborted(signal).then(() => {
        throw new GatewayUnavailableError('aborted');
      });
      try {
        await Promise.race([client.balance(), aborted]);
      } catch (error) {
        if (error instanceof GatewayUnavailableError) throw error;
      }
    },
    async withdraw(request) {
      let connection: WithdrawConnection;
      try {
        connection = await client.openConnection(new AbortController().signal);
      } catch (error) {
        return { kind: 'not_sent', reason: describeFailure(error) };
      }
      return connection.withdraw(request, { mayWrite: () => true });
    },
    async getStatus(txhash) {
      const { approve, ...details } = await client.transactionStatus({ txhash });
      return { kind: STATUS_KIND[approve], ...details };
    },
    transactionStatus: async (request) => queries.call(ENDPOINTS.transactionstatus, request),
    getPaymentWallet: async (request) => queries.call(ENDPOINTS.getpaymentwallet, request),
    currencies: async () => queries.call(ENDPOINTS.currencies, {}),
    balance: async () => queries.call(ENDPOINTS.balance, {}),
    close() {
      queries.close();
    },
  };
  return client;
}
