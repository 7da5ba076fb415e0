import { z } from 'zod';
import type { Clock } from '../clock.js';
import { baseUrlField, millisecondsField, parseInput, platformIdField } from '../fields.js';
import { failsafeLogger, type Logger } from '../logger.js';
import { describeFailure } from './describe-failure.js';
import { openSocket } from './open-socket.js';
import {
  readBalance,
  readCurrencies,
  readPaymentWallet,
  readTransactionStatus,
  type Currency,
  type PaymentWallet,
  type TransactionStatus,
} from './parse-responses.js';
import { createReadCaller } from './query-client.js';
import { createRequestSigner } from './request-signer.js';
import { paymentWalletRequestSchema, transactionStatusRequestSchema } from './schemas.js';
import { createWithdrawConnection } from './withdraw-connection.js';
import type { WithdrawConnection, WithdrawGateway, WithdrawOutcome, WithdrawRequest } from './withdraw-gateway.js';

/**
 * The payment gateway's HTTP API as one object: this folder's entrance.
 *
 * `/withdraw` moves money and cannot be asked twice, so what came of it is a value that says how sure it is. The other
 * four only read, and throw.
 */

export interface GatewayClientOptions {
  /** https, or http on loopback only; a path is kept. */
  readonly baseUrl: string;
  readonly platformId: number;
  readonly secretKey: string;
  /** For a whole call of the reading endpoints. @defaultValue 30000 */
  readonly timeoutMs?: number;
  /** For an answer to `/withdraw`, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number;
  /** For making a withdraw's connection ready: DNS, TCP and TLS together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number;
  /** PEM certificates of the authorities to trust instead of the system's. */
  readonly ca?: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The gateway's endpoints as methods: query calls, and connections for a withdrawal each. */
export interface GatewayClient extends WithdrawGateway {
  /**
   * Connects, signs and sends at once, outside of any queue and its pace; never rejects.
   * Two of these less than a second apart block the account.
   */
  withdraw(request: WithdrawRequest): Promise<WithdrawOutcome>;
  /**
   * How far a transaction is.
   * @throws InvalidInputError, GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError
   */
  transactionStatus(request: { readonly txhash: string }): Promise<TransactionStatus>;
  /**
   * The deposit address of a currency for one of the platform's own identifiers.
   * @throws InvalidInputError, GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError
   */
  getPaymentWallet(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /**
   * The supported currencies with their USD rates, every field as it came.
   * @throws GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError
   */
  currencies(): Promise<Currency[]>;
  /**
   * The balance as it came: the API document does not show its structure.
   * @throws GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError
   */
  balance(): Promise<unknown>;
  /** Closes the connections that are kept for reading calls. Withdraws under way are not cut off. */
  close(): void;
}

const optionsSchema = z.object({
  baseUrl: baseUrlField,
  platformId: platformIdField,
  timeoutMs: millisecondsField(1).default(30_000),
  withdrawTimeoutMs: millisecondsField(1).default(60_000),
  connectTimeoutMs: millisecondsField(1).default(10_000),
});

/**
 * Makes a client of one account.
 * @throws InvalidInputError when the base URL, the platform id or a time is not usable
 */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const { clock } = options;
  const logger = failsafeLogger(options.logger);
  const { baseUrl, platformId, timeoutMs, withdrawTimeoutMs, connectTimeoutMs } = parseInput(optionsSchema, options);
  const ca = options.ca === undefined ? {} : { ca: options.ca };
  const sign = createRequestSigner(platformId, options.secretKey);
  const reader = createReadCaller({ baseUrl, sign, timeoutMs, ...ca, logger, clock });
  const withdrawUrl = `${baseUrl}/withdraw`;

  const client: GatewayClient = {
    async openConnection(signal) {
      const socket = await openSocket(new URL(withdrawUrl), { connectTimeoutMs, ...ca, signal });
      return createWithdrawConnection(socket, { url: withdrawUrl, sign, withdrawTimeoutMs, logger, clock });
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
    async transactionStatus(request) {
      const { txhash } = parseInput(transactionStatusRequestSchema, request);
      return readTransactionStatus(await reader.call('transactionstatus', { txhash }), txhash);
    },
    async getPaymentWallet(request) {
      const data = parseInput(paymentWalletRequestSchema, request);
      return readPaymentWallet(await reader.call('getpaymentwallet', data));
    },
    async currencies() {
      return readCurrencies(await reader.call('currencies', {}));
    },
    async balance() {
      return readBalance(await reader.call('balance', {}));
    },
    close() {
      reader.close();
    },
  };
  return client;
}
