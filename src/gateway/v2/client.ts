import { parseInput } from '../../base/fields.js';
import { comparePayment } from '../compare-payment.js';
import { type GatewayClientOptions, toAccess } from '../exchange/client-options.js';
import { createQueryClient, probeBy } from '../exchange/query-client.js';
import { openSocket } from '../exchange/socket.js';
import { createWithdrawConnection, type WithdrawDialect } from '../exchange/withdraw-connection.js';
import type { Gateway } from '../gateway.js';
import { toBalanceList } from '../parse-balance.js';
import { toCurrencyList } from '../parse-currencies.js';
import { classifyStop } from '../stop-sign.js';
import {
  classifyWithdrawResponse,
  ENDPOINTS,
  parseAddress,
  parseBalanceValue,
  parseCurrencyItems,
  parseEvent,
  parseFound,
  parseStatus,
} from './endpoints.js';
import { createBodyVerifier, createJsonSigner, type JsonSigner } from './signing.js';

/** docs/gateway-api-v2.md#limits */
const MIN_WITHDRAW_GAP_MS = 1_000;

/**
 * The second generation of the gateway's HTTP API (docs/gateway-api-v2.md) for one account.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function openV2(options: GatewayClientOptions): Gateway {
  const access = toAccess(options);
  const sign = createJsonSigner(options.platformId, options.secretKey);
  const isSigned = createBodyVerifier(options.platformId, options.secretKey);
  const queries = createQueryClient(access);
  const withdrawals = withdrawDialect(sign);
  const { withdrawstatus, address, currencies, balance } = ENDPOINTS;

  const readItems = async () => queries.call({ path: currencies.path, ...sign({}), parseResult: parseCurrencyItems });
  const readBalance = async () => queries.call({ path: balance.path, ...sign({}), parseResult: parseBalanceValue });

  return {
    capabilities: { minWithdrawGapMs: MIN_WITHDRAW_GAP_MS },
    async openConnection(signal) {
      const socket = await openSocket(new URL(access.baseUrl), access, signal);
      return createWithdrawConnection(socket, access, withdrawals);
    },
    probe: async (signal) => probeBy(readBalance(), signal),
    async getStatus(gatewayId) {
      const request = parseInput(withdrawstatus.request, { transactionId: gatewayId });
      return queries.call({
        ...{ path: withdrawstatus.path, ...sign(request) },
        parseResult: (fields) => parseStatus(fields, gatewayId),
      });
    },
    async findPayment(orderId) {
      const request = parseInput(withdrawstatus.request, { orderId });
      return queries.call({
        ...{ path: withdrawstatus.path, ...sign(request) },
        parseResult: (fields) => parseFound(fields, orderId),
      });
    },
    readEvent({ headers, body }) {
      if (!isSigned(headers['x-signature'], body)) return { kind: 'forged' };
      const gatewayId = parseEvent(body);
      return gatewayId === undefined ? { kind: 'unreadable' } : { kind: 'payment', gatewayId };
    },
    comparePayment,
    classifyStop,
    readCurrencies: async () => toCurrencyList(await readItems()),
    readBalances: async (known) => toBalanceList(await readBalance(), known),
    async getPaymentWallet(request) {
      const signed = sign(parseInput(address.request, request));
      return queries.call({ path: address.path, ...signed, parseResult: parseAddress });
    },
    close() {
      queries.close();
    },
  };
}

function withdrawDialect(sign: JsonSigner): WithdrawDialect {
  const { path, request: schema } = ENDPOINTS.withdraw;
  return {
    path,
    prepare(request, orderId) {
      const { success, data, error } = schema.safeParse({ ...request, ...(orderId !== undefined && { orderId }) });
      if (!success) return { wrong: error.issues.map((issue) => issue.path.join('.') || 'request') };
      const { paymentId, addressTo, amount, symbol } = data;
      // In the order of the API's pages.
      const signed = sign({ paymentId, addressTo, amount, symbol, orderId });
      return { ...signed, classify: (response) => classifyWithdrawResponse(response, data) };
    },
  };
}
