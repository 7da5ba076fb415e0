import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import * as errors from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { createGatewayClient, type GatewayClient } from '../../src/gateway/gateway-client.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { changeManyPayouts } from '../../src/operator/change-payouts.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';

const { ConflictError, InvalidInputError, NotFoundError } = errors;

let rig: OperatorRig;
beforeEach(async () => {
  rig = await openOperatorRig();
});
afterEach(async () => rig.close());

async function hold(payoutId = 'p'): Promise<void> {
  await rig.bring(payoutId, 'queued');
  expect(await rig.account.sender.holdPayout(payoutId, 0, HOLD)).toBe(true);
}

const stateOf = async (payoutId: string): Promise<unknown> => (await rig.account.ledger.get(payoutId))?.state;

describe('what is queued again', () => {
  it.each<[string, 'rejected' | 'held' | 'unknown', () => Promise<unknown>]>([
    ['retry', 'rejected', async () => rig.operator.retry('p', ANN)],
    ['release', 'held', async () => rig.operator.release('p', ANN)],
    ['resolve as not sent', 'unknown', async () => rig.operator.resolve('p', { kind: 'not_sent' }, ANN)],
  ])('by %s has a job of its own at the end of the queue, and records who and why', async (_, from, decide) => {
    await (from === 'held' ? hold() : rig.bring('p', from));
    await rig.bring('q', 'queued');
    const payout = await decide();
    expect(payout).toMatchObject({ state: 'queued', requeueCount: 1 });
    expect(payout).not.toHaveProperty('held');
    const last = (await rig.account.ledger.get('p'))?.history.at(-1);
    expect(last).toMatchObject({ from, to: 'queued', ...ANN });
    const { redis, keys } = rig.account.connection;
    expect(await redis.hexists(keys.payout('p'), 'held')).toBe(0);
    expect(await redis.zrange(keys.state('queued'), '0', '-1')).toEqual(['q', 'p']);
    expect(await rig.withdrawJobs()).toContain('p~1');
    expect(await rig.outbox()).toEqual([]);
  });

  it.each<['retry' | 'release', 'unknown' | 'rejected' | 'queued', RegExp]>([
    ['retry', 'unknown', /from unknown to queued: that needs rejected\. Allowed from unknown: in_progress, rejected,/],
    [
      'release',
      'rejected',
      /that needs held\. Allowed from rejected: queued, cancelled\. `payouts retry` queues it again$/,
    ],
    ['release', 'unknown', /\. `payouts resolve` decides what became of it$/],
    ['release', 'queued', /from queued to queued: that needs held\. Allowed/],
  ])('is none that %s may not queue: one that is %s', async (verb, state, message) => {
    await rig.bring('p', state);
    const refused = rig.operator[verb]('p', ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    await expect(refused).rejects.toThrow(message);
    await expect(rig.operator[verb]('nobody', ANN)).rejects.toThrow(new NotFoundError('Payout nobody not found'));
  });

  it('is released where it is held: retry and resolve say so; and never where it was paid late', async () => {
    await hold();
    const named = /that needs (rejected|unknown)\. .*It was not sent: `payouts release` queues/;
    await expect(rig.operator.retry('p', ANN)).rejects.toThrow(named);
    for (const kind of ['not_sent', 'write_off'] as const)
      await expect(rig.operator.resolve('p', { kind }, ANN)).rejects.toThrow(named);
    await rig.account.redis.hset(rig.account.connection.keys.payout('p'), 'lateTxhash', 'hash-1');
    await expect(rig.operator.release('p', ANN)).rejects.toThrow(/was paid as hash-1/);
  });

  it('is none while the request may still be on its way, or where it was sent again meanwhile', async () => {
    await rig.bring('p', 'unknown');
    const { redis, keys } = rig.account.connection;
    await redis.hset(keys.payout('p'), 'doubtUntil', Date.now() + 60_000);
    const resolving = rig.operator.resolve('p', { kind: 'not_sent' }, ANN);
    await expect(resolving).rejects.toThrow(ConflictError);
    await expect(resolving).rejects.toThrow(/may still be on its way to the gateway for \d+ s/);
    await redis.hset(keys.payout('p'), { doubtUntil: 0, attempt: 2 });
    const resolve = async (attempt: number): Promise<unknown> =>
      rig.operator.resolve({ payoutId: 'p', attempt }, { kind: 'not_sent' }, ANN);
    await expect(resolve(1)).rejects.toThrow(/sent again meanwhile/);
    expect(await resolve(2)).toMatchObject({ state: 'queued' });
  });
});

describe('what is cancelled', () => {
  it.each(['queued', 'held', 'rejected', 'unknown'] as const)('is a payout that is %s, and its job', async (state) => {
    await (state === 'held' ? hold() : rig.bring('p', state));
    const { operator } = rig;
    const cancelling =
      state === 'unknown' ? operator.resolve('p', { kind: 'write_off' }, ANN) : operator.cancel('p', ANN);
    expect(await cancelling).toMatchObject({ state: 'cancelled' });
    expect(await rig.withdrawJobs()).toEqual([]);
  });

  it('is not what may have been paid, and what does not exist', async () => {
    await rig.bring('p', 'unknown');
    await rig.bring('q', 'in_progress');
    await expect(rig.operator.cancel('p', ANN)).rejects.toThrow(
      /^Cannot move payout p from unknown to cancelled: that needs queued, held or rejected\. Allowed/,
    );
    const writeOff = async (id: string): Promise<unknown> => rig.operator.resolve(id, { kind: 'write_off' }, ANN);
    await expect(writeOff('q')).rejects.toThrow(ConflictError);
    await expect(writeOff('nobody')).rejects.toThrow(NotFoundError);
    await expect(rig.operator.cancel('nobody', ANN)).rejects.toThrow(NotFoundError);
  });
});

describe('pause and resume', () => {
  it('stop and start the account, and say whether they changed anything', async () => {
    const { platformId } = rig.account.connection;
    const by = { pausedReason: ANN.reason, pausedBy: 'ann', pausedAt: expect.any(String) };
    const paused = { platformId, paused: true, ...by };
    expect(await rig.operator.pause(ANN)).toEqual({ ...paused, changed: true });
    expect(await rig.operator.pause({ by: 'bob', reason: 'lunch' })).toEqual({ ...paused, changed: false });
    const running = { platformId, paused: false, pausedReason: null, pausedBy: null, pausedAt: null };
    expect(await rig.operator.resume(ANN)).toEqual({ ...running, changed: true });
    expect(await rig.operator.resume(ANN)).toEqual({ ...running, changed: false });
  });

  it('do not resume while a send journal objects to the ledger', async () => {
    await rig.object();
    await expect(rig.operator.resume(ANN)).rejects.toThrow(ConflictError);
    await expect(rig.operator.resume(ANN)).rejects.toThrow(/^Send journal j-two contradicts this ledger/);
  });
});

describe('a decision about many payouts', () => {
  type Change = Parameters<typeof changeManyPayouts>[1];

  async function change(of: Change): Promise<unknown> {
    const access = openLedger({ platformId: rig.account.platformId, redisUrl: testRedisUrl() });
    return changeManyPayouts(access, of, ANN).finally(async () => access.close());
  }
  const RETRY = { from: 'rejected', to: 'queued' } as const;
  const named = (...payoutIds: string[]) => payoutIds.map((payoutId) => ({ payoutId }));
  const activities = async (): Promise<unknown> =>
    (await readActivity(rig.account.connection, 9)).activities.map(({ payoutId, count }) => [payoutId, count]);

  it('is one act, and gives each that it moves its job; one about one is an act of its own', async () => {
    for (const payoutId of ['p', 'q', 's']) await rig.bring(payoutId, 'rejected');
    await rig.bring('r', 'unknown');
    const changed = await change({ ...RETRY, payouts: named('p', 'r', 'nobody', 'q') });
    expect(changed).toEqual([undefined, expect.any(ConflictError), expect.any(NotFoundError), undefined]);
    expect((await rig.withdrawJobs()).sort()).toEqual(['p~1', 'q~1']);
    expect(await rig.outbox()).toEqual([]);
    await rig.operator.retry('s', ANN);
    expect(await activities()).toEqual([
      ['s', 1],
      [undefined, 2],
    ]);
  });

  it('follows a transaction where it says that they were sent, and else takes none', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'unknown');
    const decide = async (to: 'in_progress' | 'cancelled', payoutId: string): Promise<unknown> =>
      change({ from: 'unknown', to, payouts: [{ payoutId, txhash: `hash-${payoutId}` }] });
    expect([await decide('in_progress', 'p'), await decide('cancelled', 'q')]).toEqual([[undefined], [undefined]]);
    const { ledger } = rig.account;
    expect([await ledger.findByTxhash('hash-p'), await ledger.findByTxhash('hash-q')]).toEqual(['p', undefined]);
    expect(await rig.statusJobs()).toHaveLength(1);
    expect(await ledger.get('q')).not.toHaveProperty('txhash');
  });

  it('that names one twice changes none', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'rejected');
    await expect(change({ ...RETRY, payouts: named('q', 'p', 'p') })).rejects.toThrow('p is named twice');
    expect(await stateOf('q')).toBe('rejected');
    expect([await rig.withdrawJobs(), await activities()]).toEqual([[], []]);
  });
});

describe('resolve as sent', () => {
  const SECRET_KEY = 'k-operator-0123456789';
  let sandbox: Sandbox;
  let gateway: GatewayClient;
  let operator: PayoutOperator;

  const openGateway = (baseUrl: string): GatewayClient => {
    const { platformId } = rig.account.connection;
    return createGatewayClient({
      baseUrl,
      platformId,
      secretKey: SECRET_KEY,
      clock: systemClock,
      logger: silentLogger,
    });
  };
  const openOperator = (by: GatewayClient): PayoutOperator =>
    new PayoutOperator({ platformId: rig.account.connection.platformId, redisUrl: testRedisUrl(), gateway: by });

  beforeEach(async () => {
    const { platformId } = rig.account.connection;
    sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY, balance: '1000' }] });
    gateway = openGateway(sandbox.url);
    operator = openOperator(gateway);
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'unknown');
  });
  afterEach(async () => {
    await operator.close();
    gateway.close();
    await sandbox.close();
  });

  /** Pays at the gateway what a worker would have paid. @returns the txhash */
  async function pay(given: { readonly amount?: string } = {}): Promise<string> {
    const { paymentId, amount, addressTo } = aPayout('p');
    const outcome = await gateway.withdraw({ paymentId, amount, addressTo, ...given });
    if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
    return outcome.txhash;
  }

  it('follows a transaction that the gateway confirms, for one payout only', async () => {
    const txhash = await pay();
    expect(await operator.resolve('p', { kind: 'sent', txhash }, ANN)).toMatchObject({ state: 'in_progress', txhash });
    expect((await rig.account.ledger.get('p'))?.history.at(-1)).toMatchObject(ANN);
    expect(await rig.statusJobs()).toEqual(['p~0']);
    expect(await rig.outbox()).toEqual([]);
    const again = operator.resolve('q', { kind: 'sent', txhash }, ANN);
    await expect(again).rejects.toThrow(/already belongs to payout p$/);
  });

  it('refuses a transaction that is another payment, unless it is unchecked', async () => {
    const txhash = await pay({ amount: '3' });
    const refused = operator.resolve('p', { kind: 'sent', txhash }, ANN);
    await expect(refused).rejects.toThrow(errors.TransactionMismatchError);
    await expect(refused).rejects.toThrow(/amount is 3 at the gateway, .* Nothing was changed$/);
    expect(await stateOf('p')).toBe('unknown');
    expect(await operator.resolve('p', { kind: 'sent', txhash, unchecked: true }, ANN)).toMatchObject({ txhash });
    const reason = `${ANN.reason} (txhash not checked with the gateway)`;
    expect((await rig.account.ledger.get('p'))?.history.at(-1)).toMatchObject({ by: 'ann', reason });
  });

  it('refuses a payout that is not unknown before the gateway is asked, and what the gateway does not know', async () => {
    await rig.bring('r', 'rejected');
    const sent = { kind: 'sent', txhash: 'abc' } as const;
    await expect(operator.resolve('r', sent, ANN)).rejects.toThrow(ConflictError);
    expect(sandbox.stats().calls.transactionstatus).toBe(0);
    const refused = operator.resolve('p', sent, ANN);
    await expect(refused).rejects.toThrow(errors.TransactionMismatchError);
    await expect(refused).rejects.toThrow(/^The gateway has no status for transaction abc/);
    for (const txhash of ['null', '0', 'a b']) {
      for (const unchecked of [true, false])
        await expect(operator.resolve('p', { kind: 'sent', txhash, unchecked }, ANN)).rejects.toMatchObject({
          ...{ code: 'INVALID_INPUT', problems: [{ field: 'txhash' }] },
        });
    }
  });

  it('changes nothing where there is no gateway to ask, or it does not respond', async () => {
    const sent = { kind: 'sent', txhash: 'abc' } as const;
    await expect(rig.operator.resolve('p', sent, ANN)).rejects.toThrow(errors.InvalidConfigError);
    const unreachable = openGateway('http://127.0.0.1:1');
    const cutOff = openOperator(unreachable);
    await expect(cutOff.resolve('p', sent, ANN)).rejects.toThrow(GatewayUnavailableError);
    expect(await stateOf('p')).toBe('unknown');
    await cutOff.close();
    unreachable.close();
  });
});

describe('every call', () => {
  let unreachable: PayoutOperator;
  beforeAll(() => {
    unreachable = new PayoutOperator({ platformId: 1, redisUrl: 'redis://127.0.0.1:1' });
  });
  afterAll(async () => unreachable.close());

  it.each<[string, (operator: PayoutOperator, actor: typeof ANN) => Promise<unknown>]>([
    ['retry', async (operator, actor) => operator.retry('p', actor)],
    ['resolve', async (operator, actor) => operator.resolve('p', { kind: 'not_sent' }, actor)],
    ['cancel', async (operator, actor) => operator.cancel('p', actor)],
    ['pause', async (operator, actor) => operator.pause(actor)],
    ['resume', async (operator, actor) => operator.resume(actor)],
    ['adoptLedger', async (operator, actor) => operator.adoptLedger({ journalDirs: [] }, actor)],
  ])(
    '%s refuses an actor without a name or a reason, a newer ledger, a Redis that is gone, and once it is closed',
    async (_, call) => {
      for (const [actor, field] of [
        [{ ...ANN, by: '' }, 'by'],
        [{ ...ANN, reason: 'a\nb' }, 'reason'],
      ] as const) {
        const refused = call(rig.operator, actor);
        await expect(refused).rejects.toThrow(InvalidInputError);
        await expect(refused).rejects.toMatchObject({ problems: [{ field }] });
      }
      await expect(call(unreachable, ANN)).rejects.toThrow(errors.RedisUnavailableError);
      await rig.bring('p', 'queued');
      await rig.account.redis.hset(rig.account.connection.keys.ledger, 'format', '9');
      await expect(call(rig.operator, ANN)).rejects.toThrow(errors.UnsupportedFormatError);
      await rig.operator.close();
      await rig.operator.close();
      const closed = new errors.ClosedError('Operator is closed; create a new one');
      await expect(call(rig.operator, ANN)).rejects.toThrow(closed);
    },
  );
});
