import { expect, it } from '@jest/globals';
import {
  type Gateway,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
  type OwnGateway,
  type PaymentStatus,
  type WithdrawConnection,
} from '../../src/gateway/gateway.js';
import { findFaults, guardGateway } from '../../src/gateway/own-gateway.js';

const REQUEST = { paymentId: 6, amount: '1', addressTo: 'wallet' };
const ACCEPTED = { kind: 'accepted', gatewayId: '4711', durationMs: 0 };

type Withdraw = WithdrawConnection['withdraw'];

function connection(withdraw: unknown, changes: object = {}): WithdrawConnection {
  const made = { usable: true, resendsForMs: 0, withdraw, reset: () => undefined, close: () => undefined, ...changes };
  return made as WithdrawConnection;
}

function gateway(changes: object = {}): OwnGateway {
  const made = {
    id: 'test',
    capabilities: { minWithdrawGapMs: 1_000 },
    openConnection: async () => Promise.resolve(connection(async () => Promise.resolve(ACCEPTED))),
    probe: async () => Promise.resolve(),
    classifyStop: () => ({ blockedReason: undefined, isOfPayout: true }),
    getStatus: async () => Promise.resolve({ kind: 'paid' }),
    comparePayment: () => [],
    readCurrencies: async () => Promise.resolve({ currencies: [], isWhole: true, given: [] }),
    readBalances: async () => Promise.resolve({ balances: [], given: [] }),
    close: () => undefined,
    ...changes,
  };
  return made as unknown as OwnGateway;
}

const guard = (changes: object) => guardGateway(gateway(changes), { timeoutMs: 1, withdrawTimeoutMs: 1 });
const signal = new AbortController().signal;

/** What comes of a withdrawal through a connection of such a gateway, with permission unless it says otherwise. */
async function outcomeOf(withdraw: unknown, may = true, changes: object = {}) {
  const guarded = guard({ openConnection: async () => Promise.resolve(connection(withdraw, changes)) });
  const opened = await guarded.openConnection(signal);
  return opened.withdraw(REQUEST, { mayWrite: () => may });
}

const asking =
  (answer: unknown): Withdraw =>
  async (_, { mayWrite }) => {
    mayWrite();
    return Promise.resolve(answer) as ReturnType<Withdraw>;
  };
const never = new Promise<never>(() => undefined);

it.each<[string, unknown, object]>([
  ['that was asked for and accepted', asking(ACCEPTED), { kind: 'accepted', gatewayId: '4711' }],
  [
    'that was rejected',
    asking({ kind: 'rejected', message: 'no funds', httpStatus: 422 }),
    { kind: 'rejected', message: 'no funds', httpStatus: 422 },
  ],
  ['accepted under a name that is none', asking({ kind: 'accepted', gatewayId: 'null' }), { kind: 'unknown' }],
  ['accepted without a name', asking({ kind: 'accepted' }), { kind: 'unknown' }],
  ['accepted by a number', asking({ kind: 'accepted', gatewayId: 4711 }), { kind: 'unknown' }],
  ['rejected without a message', asking({ kind: 'rejected' }), { kind: 'unknown' }],
  ['with no outcome', asking(undefined), { kind: 'unknown' }],
  ['with an outcome that is none', asking({ kind: 'paid' }), { kind: 'unknown' }],
  ['"not sent" after permission', asking({ kind: 'not_sent', reason: 'r' }), { kind: 'unknown' }],
  ['"not sent" before it', async () => Promise.resolve({ kind: 'not_sent', reason: 'r' }), { kind: 'not_sent' }],
  ['accepted without permission', async () => Promise.resolve(ACCEPTED), { kind: 'unknown', reason: /as 4711/ }],
  ['rejected without permission', async () => Promise.resolve({ kind: 'rejected', message: 'm' }), { kind: 'unknown' }],
  [
    'that throws at once',
    () => {
      throw new Error('boom');
    },
    { kind: 'unknown', reason: /boom/ },
  ],
  ['that rejects with no error', async () => Promise.reject(Object.create(null) as Error), { kind: 'unknown' }],
  ['that hangs', async () => never, { kind: 'unknown', reason: /within/ }],
])('a withdrawal %s', async (_, withdraw, { reason, ...expected }: { reason?: RegExp }) => {
  const outcome = await outcomeOf(withdraw);
  expect(outcome).toMatchObject({ ...expected, ...(reason && { reason: expect.stringMatching(reason) }) });
});

it('permission is given once, never after the outcome, and only what was permitted counts as sent', async () => {
  const given: boolean[] = [];
  let late = (): boolean => true;
  const outcome = await outcomeOf((async (_, { mayWrite }) => {
    given.push(mayWrite(), mayWrite());
    late = mayWrite;
    return Promise.resolve({ kind: 'accepted', gatewayId: '1', durationMs: 0 });
  }) satisfies Withdraw);
  expect([outcome.kind, given, late()]).toEqual(['accepted', [true, false], false]);
  let hung = (): boolean => true;
  await outcomeOf((async (_, { mayWrite }) => {
    hung = mayWrite;
    return never;
  }) satisfies Withdraw);
  expect(hung()).toBe(false);
  expect(await outcomeOf(asking(ACCEPTED), false)).toMatchObject({ kind: 'unknown' });
  expect(await outcomeOf(asking({ kind: 'not_sent', reason: 'r' }), false)).toMatchObject({ kind: 'not_sent' });
});

it('a connection without a clear answer is reset, sends once, and may throw', async () => {
  const reasons: string[] = [];
  const changes = {
    reset: (reason: string) => {
      reasons.push(reason);
      throw new Error('boom');
    },
  };
  expect(await outcomeOf(asking(undefined), true, changes)).toMatchObject({ kind: 'unknown' });
  expect(reasons).toEqual(['the gateway gave an outcome that is none']);
  const guarded = guard({ openConnection: async () => Promise.resolve(connection(asking(ACCEPTED))) });
  const opened = await guarded.openConnection(signal);
  await opened.withdraw(REQUEST, { mayWrite: () => true });
  expect(opened.usable).toBe(false);
  expect(await opened.withdraw(REQUEST, { mayWrite: () => true })).toMatchObject({ kind: 'not_sent' });
});

it.each<[string, object]>([
  [
    'throws',
    {
      openConnection: () => {
        throw new Error('boom');
      },
    },
  ],
  ['rejects', { openConnection: async () => Promise.reject(new Error('boom')) }],
  ['gives nothing', { openConnection: async () => Promise.resolve(undefined) }],
  [
    'does not say how long it may still send',
    { openConnection: async () => Promise.resolve(connection(never, { resendsForMs: NaN })) },
  ],
])('a gateway that %s when a connection is opened is unavailable', async (_, changes) => {
  await expect(guard(changes).openConnection(signal)).rejects.toThrow(GatewayUnavailableError);
});

const STATUS: PaymentStatus = { kind: 'paid', txhash: '0xabc', paymentId: 6, addressTo: 'w', amount: '1', fee: '0.1' };

it('a status counts as the gateway gives it, and no other answer is one', async () => {
  const statusOf = async (answer: unknown) => guard({ getStatus: async () => Promise.resolve(answer) }).getStatus('1');
  expect(await statusOf(STATUS)).toEqual(STATUS);
  // Nothing is decided by a hash.
  expect(await statusOf({ ...STATUS, txhash: 'null' })).toEqual({ ...STATUS, txhash: undefined });
  for (const nonsense of [
    undefined,
    'paid',
    {},
    { kind: 'completed' },
    { ...STATUS, amount: 1 },
    { ...STATUS, paymentId: '6' },
  ])
    await expect(statusOf(nonsense)).rejects.toThrow(GatewayInvalidResponseError);
});

it.each<[string, () => unknown, new (...args: never[]) => Error]>([
  ['its own error', async () => Promise.reject(new TypeError('boom')), GatewayInvalidResponseError],
  ['a refusal', async () => Promise.reject(new GatewayRejectedError('status', 'who?')), GatewayRejectedError],
  [
    'a refusal by another copy of this package',
    async () => Promise.reject(Object.assign(new Error('who?'), { code: 'GATEWAY_REJECTED', gatewayMessage: 'who?' })),
    GatewayRejectedError,
  ],
  ['no answer in time', async () => never, GatewayUnavailableError],
])('a query that ends with %s is that error', async (_, getStatus, type) => {
  await expect(guard({ getStatus }).getStatus('1')).rejects.toThrow(type);
});

it('a comparison or a sign of a stop that fails never lets a payment pass, nor sends on', () => {
  const boom = () => {
    throw new Error('boom');
  };
  expect(() => guard({ comparePayment: boom }).comparePayment(STATUS, REQUEST)).toThrow(GatewayInvalidResponseError);
  expect(() => guard({ comparePayment: () => true }).comparePayment(STATUS, REQUEST)).toThrow(
    GatewayInvalidResponseError,
  );
  for (const classifyStop of [boom, () => undefined, () => 'fine']) {
    const stop = guard({ classifyStop }).classifyStop('no funds');
    expect(stop).toEqual({ blockedReason: expect.stringMatching(/classifyStop failed .*no funds/), isOfPayout: false });
  }
  expect(() => {
    guard({ close: boom }).close();
  }).not.toThrow();
});

it('a probe that fails or hangs is no response', async () => {
  for (const probe of [async () => never, async () => Promise.reject(new Error('boom'))])
    await expect(guard({ probe }).probe(signal)).rejects.toThrow(GatewayUnavailableError);
});

it.each<[string, unknown, string]>([
  ['a text', 'acme', 'must be an object of the interface OwnGateway (got a string)'],
  ['an object without a name', gateway({ id: undefined }), 'id must be 1 to 64 of A-Z a-z 0-9 . _ - and begin'],
  ['a name that could be a URL', gateway({ id: 'https://x' }), '(got "https://x")'],
  ['a missing method', gateway({ getStatus: undefined }), 'getStatus must be a function (got undefined)'],
  ['another thing for one', gateway({ close: 7 }), 'close must be a function (got a number)'],
  ['no gap', gateway({ capabilities: {} }), 'capabilities.minWithdrawGapMs must be a whole number of ms'],
  ['a gap below 1', gateway({ capabilities: { minWithdrawGapMs: 0 } }), 'from 1 to 3600000 (got 0)'],
])('%s is no gateway', (_, given, message) => {
  expect(findFaults(given).join('; ')).toContain(message);
  expect(findFaults(gateway() satisfies Gateway)).toEqual([]);
});
