import { randomUUID } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { z } from 'zod';
import { type Clock, systemClock, untilAborted } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import { baseUrlField, millisecondsField, parseInput } from '../../base/fields.js';
import { failsafeLogger, type Logger, silentLogger } from '../../base/logger.js';
import { lookUpGateway } from '../../base/look-up.js';
import { checkOptions, type OptionRules, text, WATCHING_RULES } from '../../base/setting.js';
import { ACCOUNT_IDENTITY, CONNECT_WITHIN_MS } from '../../base/settings.js';
import { type GatewayAccess, post, type SignedRequest } from '../exchange/exchange-once.js';
import {
  describeFailure,
  type Gateway,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
  type PaymentStatus,
  type PaymentWallet,
  type WithdrawConnection,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../gateway.js';
import { parseResponse, type RawResponse } from '../exchange/responses.js';
import { openSocket } from '../exchange/socket.js';
import { createWithdrawConnection, type WithdrawDialect } from '../exchange/withdraw-connection.js';
import { classifyStop } from '../stop-sign.js';
import { comparePayment } from './compare-payment.js';
import {
  type Approve,
  classifyWithdrawResponse,
  type CurrencyItem,
  type Endpoint,
  ENDPOINTS,
  type TransactionStatus,
} from './endpoints.js';
import { toBalanceList } from './parse-balance.js';
import { toCurrencyList } from './parse-currencies.js';
import { createRequestSigner, type RequestSigner } from './signing.js';

/**
 * The first generation of the gateway's HTTP API (docs/gateway-api.md) as one object.
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
  readonly timeoutMs?: number | undefined;
  /** For a response to `/withdraw`, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number | undefined;
  /** For DNS, TCP and TLS of a withdrawal together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number | undefined;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** @defaultValue a silent logger */
  readonly logger?: Logger | undefined;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock | undefined;
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
  getPaymentWallet(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /** The supported currencies with their USD rates, every field as it came. */
  currencies(): Promise<CurrencyItem[]>;
  /** The balance as it came: its structure is undefined (docs/gateway-api.md#open-points). */
  balance(): Promise<unknown>;
}

const STATUS_KIND: Readonly<Record<Approve, PaymentStatus['kind']>> = { 0: 'pending', 1: 'paid', 2: 'failed' };

/** docs/gateway-api.md#limits */
const MIN_WITHDRAW_GAP_MS = 1_000;

const time = { rule: millisecondsField(1) };

const RULES = {
  ...ACCOUNT_IDENTITY,
  timeoutMs: time,
  withdrawTimeoutMs: time,
  connectTimeoutMs: time,
  ca: { rule: text },
  ...WATCHING_RULES,
} as const satisfies OptionRules<GatewayClientOptions>;

/**
 * Makes a client of the gateway for one account.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const problems = checkOptions(RULES, options);
  if (problems.length > 0) throw new InvalidInputError(problems);
  const access: GatewayAccess = {
    baseUrl: baseUrlField.parse(options.baseUrl),
    timeoutMs: options.timeoutMs ?? 30_000,
    withdrawTimeoutMs: options.withdrawTimeoutMs ?? 60_000,
    connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_WITHIN_MS,
    ca: options.ca,
    logger: failsafeLogger(options.logger ?? silentLogger),
    clock: options.clock ?? systemClock,
  };
  const sign = createRequestSigner(options.platformId, options.secretKey);
  const queries = createQueryClient(access, sign);
  const withdrawals = withdrawDialect(sign);

  const client: GatewayClient = {
    capabilities: { minWithdrawGapMs: MIN_WITHDRAW_GAP_MS },
    async openConnection(signal) {
      const socket = await openSocket(new URL(access.baseUrl), access, signal);
      return createWithdrawConnection(socket, access, withdrawals);
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
    async getStatus(gatewayId) {
      const { approve, ...details } = await client.transactionStatus({ txhash: gatewayId });
      return { kind: STATUS_KIND[approve], ...details };
    },
    comparePayment,
    classifyStop,
    readCurrencies: async () => toCurrencyList(await client.currencies()),
    readBalances: async (currencies) => toBalanceList(await client.balance(), currencies),
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

interface QueryClient {
  /**
   * @throws InvalidInputError if the request breaks a rule and was not sent; GatewayRejectedError,
   * GatewayUnavailableError, GatewayInvalidResponseError
   */
  call<Shape extends z.ZodRawShape, Result>(
    endpoint: Endpoint<Shape, Result>,
    request: z.input<z.ZodObject<Shape>>,
  ): Promise<Result>;
  close(): void;
}

/**
 * Calls the endpoints that move no money. They may be repeated, so connections are kept and failures are exceptions.
 */
function createQueryClient({ baseUrl, timeoutMs, ca, logger, clock }: GatewayAccess, sign: RequestSigner): QueryClient {
  const agent = baseUrl.startsWith('https:')
    ? new https.Agent({
        keepAlive: true,
        lookup: lookUpGateway,
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
      })
    : new http.Agent({ keepAlive: true, lookup: lookUpGateway });

  return {
    async call({ path, signedFields, request: schema, parseResult }, input) {
      const request = parseInput(schema, input);
      const { redact, ...signed } = sign(signedFields, request);
      const log = logger.child({ requestId: randomUUID(), endpoint: path });
      const startedAtMs = clock.now();
      const raw = await ask(path, signed).catch((error: unknown) => {
        log.debug({ durationMs: Math.round(clock.now() - startedAtMs), outcome: 'unavailable' }, 'gateway called');
        throw error;
      });
      const response = parseResponse(raw);
      const durationMs = Math.round(clock.now() - startedAtMs);
      log.debug({ httpStatus: raw.status, durationMs, outcome: response.kind }, 'gateway called');

      if (response.kind === 'succeeded') return parseResult(response.fields, request);
      if (response.kind === 'failed') throw new GatewayRejectedError(path, redact(response.message));
      if (meansTryLater(raw.status))
        throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${response.reason}`, raw.status);
      throw new GatewayInvalidResponseError(path, response.reason);
    },
    close() {
      agent.destroy();
    },
  };

  async function ask(path: string, signed: Pick<SignedRequest, 'body' | 'headers'>): Promise<RawResponse> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await post({ url: `${baseUrl}/${path}`, ...signed }, agent, signal);
    } catch (error) {
      const reason = signal.aborted ? `no complete response within ${timeoutMs} ms` : describeFailure(error);
      throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${reason}`);
    }
  }
}

function meansTryLater(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}
