import type { z } from 'zod';
import { parseInput } from '../../base/fields.js';
import { type GatewayClientOptions, toAccess } from '../exchange/client-options.js';
import { createQueryClient, probeBy, type QueryClient } from '../exchange/query-client.js';
import {
  describeFailure,
  type Gateway,
  type PaymentWallet,
  type WithdrawConnection,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../gateway.js';
import type { ResponseFields } from '../exchange/responses.js';
import { openSocket } from '../exchange/socket.js';
import { createWithdrawConnection, type WithdrawDialect } from '../exchange/withdraw-connection.js';
import { classifyStop } from '../stop-sign.js';
import { comparePayment } from '../compare-payment.js';
import { classifyWithdrawResponse, type Endpoint, ENDPOINTS, type TransactionStatus } from './endpoints.js';
import { type CurrencyItem, STATUS_KIND } from '../response-fields.js';
import { toBalanceList } from '../parse-balance.js';
import { toCurrencyList } from '../parse-currencies.js';
import { createRequestSigner, type RequestSigner } from './signing.js';

/**
 * The first generation of the gateway's HTTP API (docs/gateway-api-v1.md) as one object.
 *
 * `/withdraw` moves money and cannot be repeated, so its outcome is a value with its certainty. The other four are
 * queries, and throw.
 */

/**
 * The queries throw InvalidInputError if a request breaks a rule (nothing was sent), {@link
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
  getPaymentWallet(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /** The supported currencies with their USD rates, every field as it came. */
  currencies(): Promise<CurrencyItem[]>;
  /** The balance as it came: its structure is undefined (docs/gateway-api-v1.md#open-points). */
  balance(): Promise<unknown>;
}

/** docs/gateway-api-v1.md#limits */
const MIN_WITHDRAW_GAP_MS = 1_000;

/**
 * Makes a client of the gateway for one account.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const access = toAccess(options);
  const sign = createRequestSigner(options.platformId, options.secretKey);
  const queries = createQueryClient(access);
  const call = toCall(queries, sign);
  const withdrawals = withdrawDialect(sign);

  const client: GatewayClient = {
    capabilities: { minWithdrawGapMs: MIN_WITHDRAW_GAP_MS },
    async openConnection(signal) {
      const socket = await openSocket(new URL(access.baseUrl), access, signal);
      return createWithdrawConnection(socket, access, withdrawals);
    },
    probe: async (signal) => probeBy(client.balance(), signal),
    async withdraw(request) {
      let connection: WithdrawConnection;
      try {
        connection = await client.openConnection(new AbortController().signal);
      } catch (error) {
        return { kind: 'not_sent', reason: describeFailure(error) };
      }
      return connection.withdraw(request, { mayWrite: () => true });
    },
    async getStatus(gatewayId) {
      const { approve, ...details } = await client.transactionStatus({ txhash: gatewayId });
      return { kind: STATUS_KIND[approve], ...details };
    },
    comparePayment,
    classifyStop,
    readCurrencies: async () => toCurrencyList(await client.currencies()),
    readBalances: async (currencies) => toBalanceList(await client.balance(), currencies),
    transactionStatus: async (request) => call(ENDPOINTS.transactionstatus, request),
    getPaymentWallet: async (request) => call(ENDPOINTS.getpaymentwallet, request),
    currencies: async () => call(ENDPOINTS.currencies, {}),
    balance: async () => call(ENDPOINTS.balance, {}),
    close() {
      queries.close();
    },
  };
  return client;
}

function withdrawDialect(sign: RequestSigner): WithdrawDialect {
  const { path, signedFields, request: schema } = ENDPOINTS.withdraw;
  return {
    path,
    prepare(request) {
      const { success, data, error } = schema.safeParse(request);
      if (!success) return { wrong: error.issues.map((issue) => issue.path.join('.') || 'request') };
      return { ...sign(signedFields, data), classify: (response) => classifyWithdrawResponse(response, data) };
    },
  };
}

type Call = <Shape extends z.ZodRawShape, Result>(
  endpoint: Endpoint<Shape, Result>,
  request: z.input<z.ZodObject<Shape>>,
) => Promise<Result>;

/** Checks and signs a query. It throws InvalidInputError if the request breaks a rule, and sends nothing. */
function toCall(queries: QueryClient, sign: RequestSigner): Call {
  return async ({ path, signedFields, request: schema, parseResult }, input) => {
    const request = parseInput(schema, input);
    const parse = (fields: ResponseFields) => parseResult(fields, request);
    return queries.call({ path, ...sign(signedFields, request), parseResult: parse });
  };
}
