/**
 * A gateway of your own, for an HTTP API that was invented for this example: JSON, a signature in a header, payments that
 * have ids. docs/own-gateway.md explains each part; test/examples/own-gateway.test.ts runs it against a server.
 */
import { createHmac } from 'node:crypto';
import {
  type Currency,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
  openWithdrawConnection,
  type OwnGateway,
  type PaymentStatus,
  type RawResponse,
  type WithdrawClassification,
  type WithdrawDialect,
} from 'payout-queue/gateway';

export interface AcmeOptions {
  readonly baseUrl: string;
  readonly secret: string;
  readonly timeoutMs?: number;
  readonly withdrawTimeoutMs?: number;
}

const STATES = { waiting: 'pending', done: 'paid', broken: 'failed' } as const;

export function createAcmeGateway({ baseUrl, secret, timeoutMs = 30_000, withdrawTimeoutMs }: AcmeOptions): OwnGateway {
  const sign = (text: string) => createHmac('sha256', secret).update(text).digest('hex');

  /** Moves no money, so it may be repeated, and says with an error what went wrong. */
  async function query(path: string): Promise<Fields> {
    const signature = sign(path);
    const headers = { 'x-acme-signature': signature };
    const answer = await fetch(`${baseUrl}${path}`, { headers, signal: AbortSignal.timeout(timeoutMs) })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined);
    if (answer === undefined) throw new GatewayUnavailableError(`Acme did not respond to ${path}`);
    const { status, text } = answer;
    if (status >= 500) throw new GatewayUnavailableError(`Acme answered ${path} with HTTP ${status}`, status);
    const fields = parseObject(text);
    if (fields === undefined) throw new GatewayInvalidResponseError(path, 'it is no JSON object');
    const { error } = fields;
    // A gateway may repeat what it was sent: a secret must be in no error.
    if (status >= 400) throw new GatewayRejectedError(path, String(error).replaceAll(signature, '[signature]'));
    return fields;
  }

  const withdrawals: WithdrawDialect = {
    path: 'payments',
    prepare({ paymentId, amount, addressTo, symbol }) {
      if (symbol !== undefined) return { wrong: ['symbol'] };
      const body = JSON.stringify({ coin: paymentId, amount, to: addressTo });
      const signature = sign(body);
      const headers = { 'content-type': 'application/json', 'x-acme-signature': signature };
      return { body, headers, redact: (text) => text.replaceAll(signature, '[signature]'), classify };
    },
  };

  return {
    id: 'acme',
    capabilities: { minWithdrawGapMs: 1_000 },
    openConnection: async (signal) => openWithdrawConnection({ baseUrl, withdrawTimeoutMs }, withdrawals, signal),
    async probe(signal) {
      const aborted = new Promise<never>((_, reject) => {
        const abort = () => {
          reject(new GatewayUnavailableError('aborted'));
        };
        if (signal.aborted) abort();
        else signal.addEventListener('abort', abort, { once: true });
      });
      await Promise.race([query('/funds'), aborted]).catch((error: unknown) => {
        if (error instanceof GatewayUnavailableError) throw error;
      });
    },
    // The account, unless Acme says that it is the payment. In doubt a person looks at the account.
    classifyStop: (message) =>
      /^(address|amount) /.test(message)
        ? { blockedReason: undefined, isOfPayout: true }
        : { blockedReason: `Acme says: ${message}`, isOfPayout: false },
    async getStatus(gatewayId): Promise<PaymentStatus> {
      const { state, hash, coin, to, amount } = await query(`/payments/${encodeURIComponent(gatewayId)}`);
      const kind = STATES[state as keyof typeof STATES] as PaymentStatus['kind'] | undefined;
      if (kind === undefined) throw new GatewayInvalidResponseError('payments', 'it has no state');
      return {
        kind,
        ...(typeof hash === 'string' && { txhash: hash }),
        ...(typeof coin === 'number' && { paymentId: coin }),
        ...(typeof to === 'string' && { addressTo: to }),
        ...(typeof amount === 'string' && { amount }),
      };
    },
    comparePayment: (status, payment) =>
      (['paymentId', 'addressTo', 'amount'] as const)
        .filter((field) => status[field] !== payment[field])
        .map((field) => ({ field, actual: status[field], expected: payment[field] })),
    async readCurrencies() {
      const { coins } = await query('/coins');
      const given = coins as readonly { id: number; name: string; usd: string }[];
      const currencies = given.map(({ id, name, usd }): Currency => ({ paymentId: id, name, usdRate: usd }));
      return { currencies, isWhole: true, given };
    },
    async readBalances() {
      const given = await query('/funds');
      const { funds } = given;
      const balances = funds as readonly { coin: number; amount: string }[];
      return { balances: balances.map(({ coin, amount }) => ({ paymentId: coin, symbol: undefined, amount })), given };
    },
    close: () => undefined,
  };
}

/** Believes only what has no other meaning: after anything else the payment may have been made. */
function classify({ status, body }: RawResponse): WithdrawClassification {
  const fields = parseObject(Buffer.from(body).toString());
  const { id, hash, error } = fields ?? {};
  if (status === 201 && typeof id === 'string' && id !== '' && error === undefined) {
    return {
      outcome: { kind: 'accepted', gatewayId: id, ...(typeof hash === 'string' && { txhash: hash }) },
      differing: [],
    };
  }
  if (status === 422 && typeof error === 'string' && id === undefined)
    return { outcome: { kind: 'rejected', message: error, httpStatus: status }, differing: [] };
  return {
    outcome: { kind: 'unknown', reason: `HTTP ${status} without a clear meaning`, httpStatus: status },
    differing: [],
  };
}

type Fields = Readonly<Record<string, unknown>>;

function parseObject(text: string): Fields | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Fields) : undefined;
  } catch {
    return undefined;
  }
}
