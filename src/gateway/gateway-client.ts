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
 * The payment gateway's HTTP API (docs/gateway-api.md) as one object: this folder's entrance.
 *
 * `/withdraw` moves money and cannot be called twice, so its outcome is a value that includes how certain it is. The other
 * four are queries, and throw.
 */

/** Where the gateway is, for which account, and how long to wait. */
export interface GatewayClientOptions {
  /** https, or http on loopback only; a path is kept. */
  readonly baseUrl: string;
  readonly platformId: number;
  readonly secretKey: string;
  /** For a whole query. @defaultValue 30000 */
  readonly timeoutMs?: number;
  /** For a response to `/withdraw`, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number;
  /** For preparing a withdrawal's connection: DNS, TCP and TLS together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number;
  /** PEM certificates of the authorities to trust instead of the system's. */
  readonly ca?: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The gateway's endpoints as methods: query calls, and connections for a withdrawal each. */
export interface GatewayClient extends Gateway {
  /**
   * Connects, signs and sends at once, outside of any queue and its pace; never rejects.
   * Two of these less than a second apart block the account.
   */
  withdraw(request: WithdrawRequest): Promise<WithdrawOutcome>;
  /**
   * How far a transaction is, in the API's own terms; `getStatus` returns it in the worker's.
   * @throws InvalidInputError when the request breaks a rule of the API; nothing was sent
   * @throws GatewayRejectedError when the gateway responds that the call failed
   * @throws GatewayUnavailableError when no complete response came
   * @throws GatewayInvalidResponseError when the response is not as documented
   */
  transactionStatus(request: { readonly txhash: string }): Promise<TransactionStatus>;
  /**
   * The deposit address of a currency for one of the platform's own identifiers.
   * @throws InvalidInputError when the request breaks a rule of the API; nothing was sent
   * @throws GatewayRejectedError when the gateway responds that the call failed
   * @throws GatewayUnavailableError when no complete response came
   * @throws GatewayInvalidResponseError when the response is not as documented
   */
  getPaymentWallet(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /**
   * The supported currencies with their USD rates, every field as it came.
   * @throws GatewayRejectedError when the gateway responds that the call failed
   * @throws GatewayUnavailableError when no complete response came
   * @throws GatewayInvalidResponseError when the response is not as documented
   */
  currencies(): Promise<Currency[]>;
  /**
   * The balance as it came: its structure is not defined (docs/gateway-api.md#open-points).
   * @throws GatewayRejectedError when the gateway responds that the call failed
   * @throws GatewayUnavailableError when no complete response came
   * @throws GatewayInvalidResponseError when the response is not as documented
   */
  balance(): Promise<unknown>;
  /** Closes the connections that are kept for queries. Withdrawals under way are not cut off. */
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
 * Creates a client for one account.
 * @throws InvalidInputError when the base URL, the platform id or a time is not usable
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
