import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import * as errors from '../../src/base/errors.js';
import { verifyAct, type WantedAct } from '../../src/control/approvals/act.js';
import { openSigner } from '../../src/control/keys/open-signer.js';
import type { Signer } from '../../src/control/keys/signer.js';
import { SignedDecisions } from '../../src/control/operator/sign-decision.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { peekSenderView, readSenderView } from '../../src/ledger/sender-view.js';
import type { AdoptionPlan } from '../../src/operator/adoption.js';
import { changeManyPayouts } from '../../src/operator/change-payouts.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { openTestKeys, type TestKeys } from '../control/support/key-files.js';
import { keyringOf, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { sendOf } from './support/adoption-world.js';
import {
  ANN,
  intentHashOf,
  openOperatorRig,
  type OperatorRig,
  requireAct,
  sendOnce,
  sendSigned,
} from './support/operator-rig.js';

const { ConflictError, NotFoundError } = errors;

let rig: OperatorRig;
beforeEach(async () => {
  rig = await openOperatorRig();
});
afterEach(async () => rig.close());

async function hold(payoutId = 'p') {
  await rig.bring(payoutId, 'queued');
  expect(await rig.account.sender.holdPayout(payoutId, 0, HOLD)).toBe(true);
}

async function journalOf(dir: string, ...numbers: readonly number[]) {
  const journal = await FileSendJournal.open({ dir, platformId: rig.account.platformId });
  const before = (numbers[0] ?? 1) - 1;
  await journal.bind({ ledgerId: 'former', epoch: 1, sends: before, token: before === 0 ? '' : `t-${before}` });
  for (const number of numbers) await journal.append(sendOf(`p-${number}`, number));
  await journal.close();
}

const stateOf = async (payoutId: string): Promise<unknown> => (await rig.account.ledger.get(payoutId))?.state;

it.each<[string, 'rejected' | 'held' | 'unknown', () => Promise<unknown>]>([
  ['retry', 'rejected', async () => rig.operator.retry('p', ANN)],
  ['release', 'held', async () => rig.operator.release('p', ANN)],
  [
    'resolve as not sent',
    'unknown',
    async () => rig.operator.resolve({ payoutId: 'p', attempt: 0 }, { kind: 'not_sent' }, ANN),
  ],
])('what %s queues again has a job of its own at the end, and records who and why', async (_, from, decide) => {
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

it('what is queued again is none that was paid, may be on its way, or was sent again meanwhile', async () => {
  const { operator, account } = rig;
  const refusals = async (call: Promise<unknown>, message: RegExp): Promise<void> =>
    expect(call).rejects.toMatchObject({ code: 'CONFLICT', message: expect.stringMatching(message) });
  await rig.bring('r', 'rejected');
  await rig.bring('p', 'unknown');
  const needs = /from unknown to queued: that needs rejected\. Allowed from unknown: in_progress, rejected,/;
  await refusals(operator.retry('p', ANN), needs);
  await refusals(operator.release('r', ANN), /that needs held\. .* `payouts retry` queues it again$/);
  await expect(operator.retry('nobody', ANN)).rejects.toThrow(new NotFoundError('Payout nobody not found'));
  await hold('h');
  await refusals(operator.retry('h', ANN), /It was not sent: `payouts release` queues/);
  const { redis, keys } = account.connection;
  const resolve = async (attempt: number): Promise<unknown> =>
    operator.resolve({ payoutId: 'p', attempt }, { kind: 'not_sent' }, ANN);
  await redis.hset(keys.payout('p'), { inFlightUntil: Date.now() + 60_000, attempt: 2 });
  await refusals(resolve(2), /may still arrive at the gateway until \S+ \d\d:\d\d:\d\d UTC/);
  await redis.hset(keys.payout('p'), { inFlightUntil: 0 });
  await refusals(resolve(1), /sent again meanwhile/);
  const unstated = operator.resolve('p', { kind: 'not_sent' }, ANN);
  await expect(unstated).rejects.toThrow('attempt: is missing');
  expect(await resolve(2)).toMatchObject({ state: 'queued' });
});

it('cancel takes what was not paid, a write-off what may be, and nothing else', async () => {
  const { operator } = rig;
  for (const state of ['queued', 'rejected', 'unknown', 'in_progress'] as const) await rig.bring(state, state);
  await hold('held');
  for (const payoutId of ['queued', 'held', 'rejected'])
    expect(await operator.cancel(payoutId, ANN)).toMatchObject({ state: 'cancelled' });
  await expect(operator.cancel('unknown', ANN)).rejects.toThrow(
    /from unknown to cancelled: that needs queued, held or/,
  );
  const writeOff = async (id: string): Promise<unknown> => operator.resolve(id, { kind: 'write_off' }, ANN);
  expect(await writeOff('unknown')).toMatchObject({ state: 'written_off', final: true });
  await expect(writeOff('in_progress')).rejects.toThrow(ConflictError);
  for (const call of [writeOff, async (id: string) => operator.cancel(id, ANN)])
    await expect(call('nobody')).rejects.toThrow(NotFoundError);
  expect(await rig.withdrawJobs()).toEqual([]);
});

it('pause and resume say whether they changed anything; an objection stays', async () => {
  const paused = { paused: true, pausedReason: ANN.reason, pausedBy: 'ann', pausedAt: expect.any(String) };
  expect(await rig.operator.pause(ANN)).toMatchObject({ ...paused, changed: true });
  expect(await rig.operator.pause({ ...ANN, reason: 'lunch' })).toMatchObject({ ...paused, changed: false });
  const running = { paused: false, pausedReason: null };
  expect(await rig.operator.resume(ANN)).toMatchObject({ ...running, changed: true });
  expect(await rig.operator.resume(ANN)).toMatchObject({ ...running, changed: false });
  await rig.object();
  await expect(rig.operator.resume(ANN)).rejects.toThrow(/^Send journal j-two contradicts this ledger/);
});

type Change = Parameters<typeof changeManyPayouts>[1];

async function change(of: Change, signer?: SignedDecisions): Promise<(Error | undefined)[]> {
  const access = openLedger({ platformId: rig.account.platformId, redisUrl: testRedisUrl() });
  return changeManyPayouts(access, of, ANN, signer).finally(async () => access.close());
}
const RETRY = { from: 'rejected', to: 'queued' } as const;
const named = (...payoutIds: string[]) => payoutIds.map((payoutId) => ({ payoutId }));
const activities = async (): Promise<unknown> =>
  (await readActivity(rig.account.connection, 9)).activities.map(({ payoutId, count }) => [payoutId, count]);

it('a decision about many payouts is one act, and gives each that it moves its job', async () => {
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

it('resolve as sent needs a gateway to ask', async () => {
  await rig.bring('p', 'unknown');
  const refused = rig.operator.resolve('p', { kind: 'sent', gatewayId: 'abc' }, ANN);
  await expect(refused).rejects.toThrow(errors.InvalidConfigError);
  expect(await stateOf('p')).toBe('unknown');
});

it.each<[string, (operator: PayoutOperator, actor: typeof ANN) => Promise<unknown>]>([
  ['retry', async (operator, actor) => operator.retry('p', actor)],
  ['resolve', async (operator, actor) => operator.resolve({ payoutId: 'p', attempt: 1 }, { kind: 'not_sent' }, actor)],
  ['cancel', async (operator, actor) => operator.cancel('p', actor)],
  ['pause', async (operator, actor) => operator.pause(actor)],
  ['resume', async (operator, actor) => operator.resume(actor)],
  ['adoptLedger', async (operator, actor) => operator.adoptLedger({ journalDirs: [] }, actor)],
])('%s refuses an actor without name or reason, a ledger of another format, and once it is closed', async (_, call) => {
  for (const [actor, field] of [
    [{ ...ANN, by: '' }, 'by'],
    [{ ...ANN, reason: 'a\nb' }, 'reason'],
  ] as const)
    await expect(call(rig.operator, actor)).rejects.toMatchObject({ code: 'INVALID_INPUT', problems: [{ field }] });
  await rig.bring('p', 'queued');
  await rig.account.redis.hset(rig.account.connection.keys.ledger, 'format', '9');
  await expect(call(rig.operator, ANN)).rejects.toThrow(errors.UnsupportedFormatError);
  await rig.operator.close();
  await rig.operator.close();
  await expect(call(rig.operator, ANN)).rejects.toThrow(errors.ClosedError);
});

const put = async (key: 'sender' | 'journals' | 'objections', field: string, value: string): Promise<unknown> =>
  rig.account.redis.hset(rig.account.connection.keys[key], field, value);

it('declareNew leaves the lease as one that was given back, once, and records who and why', async () => {
  const { ledger, connection } = rig.account;
  await rig.bring('waits', 'queued');
  expect(await ledger.findSenderTrace()).toBeUndefined();
  expect((await peekSenderView(connection)).lease).toBeUndefined();
  expect(await rig.operator.declareNew(ANN)).toBe(true);
  expect((await peekSenderView(connection)).lease).toEqual({ owner: '', epoch: 0, heartbeat: 0, released: true });
  expect(await rig.operator.declareNew(ANN)).toBe(false);
  const { activities } = await readActivity(connection, 5);
  expect(activities).toMatchObject([{ what: 'declared_new', ...ANN }]);
});

it.each<[string, () => Promise<unknown>, RegExp]>([
  ['a lease', async () => put('sender', 'epoch', '1'), /right to send/],
  ['a send', async () => put('sender', 'sends', '1'), /right to send/],
  ['a journal', async () => put('journals', 'j', '{}'), /journal/],
  ['an objection', async () => put('objections', 'j', '{}'), /journal/],
  ['a payout that was sent', async () => rig.bring('p', 'in_progress'), /a payout is in_progress/],
])('declareNew refuses an account with %s', async (_, prepare, words) => {
  await prepare();
  expect(await rig.account.ledger.findSenderTrace()).toMatch(words);
  await expect(rig.operator.declareNew(ANN)).rejects.toThrow(words);
});

describe('adoptLedger', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'payouts-operator-'));
  });
  afterEach(async () => rm(dir, { recursive: true }));

  it('shows its plan, brings back what the journals have, and is done', async () => {
    await journalOf(dir, 1, 2);
    const plans: AdoptionPlan[] = [];
    const review = (plan: AdoptionPlan) => void plans.push(plan);
    const { plan, adoption } = await rig.operator.adoptLedger({ journalDirs: [dir], review }, ANN);
    expect(plans).toEqual([plan]);
    expect(plan).toMatchObject({ forgotten: 2, unread: [], unwitnessed: [] });
    const adopted = ['p-1', 'p-2'].map((payoutId) => ({ payoutId, state: 'unknown' }));
    expect(adoption).toMatchObject({ adopted, objections: 0 });
    expect((await rig.account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: 'ann' });
    expect(await rig.operator.adoptLedger({ journalDirs: [dir], review }, ANN)).toMatchObject({ adoption: undefined });
    expect(plans).toHaveLength(1);
  });

  it('ends again what the journal has as ended, and counts acts of people on', async () => {
    await journalOf(dir, 1);
    await rig.account.ledger.enqueue([aPayout('fraud'), aPayout('settled'), aPayout('open')]);
    const journal = await FileSendJournal.open({ dir, platformId: rig.account.platformId });
    const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
    const about = { at: 5, by: 'zoe', reason: 'fraud', request };
    const ended = [
      { payoutId: 'fraud', state: 'cancelled', ...about },
      { payoutId: 'settled', state: 'written_off', ...about },
      { payoutId: 'forgotten', state: 'cancelled', ...about },
    ] as const;
    await journal.noteActs({ at: 6, count: 41, ended });
    await journal.close();
    const { adoption } = await rig.operator.adoptLedger({ journalDirs: [dir] }, ANN);
    expect(adoption?.putBack).toEqual(ended.map(({ payoutId, state }) => ({ payoutId, state })));
    const states = ['fraud', 'settled', 'forgotten', 'open'].map(stateOf);
    expect(await Promise.all(states)).toEqual(['cancelled', 'written_off', 'cancelled', 'queued']);
    const [again] = await rig.account.ledger.enqueue([{ payoutId: 'forgotten', ...request }]);
    expect(again).toMatchObject({ kind: 'exists', payout: { state: 'cancelled', final: true } });
    expect((await readSenderView(rig.account.connection)).acts).toBeGreaterThan(41);
    const reread = await FileSendJournal.open({ dir, platformId: rig.account.platformId });
    expect([reread.acts, reread.hasEnded('fraud'), reread.hasEnded('open')]).toEqual([41, true, false]);
    await reread.close();
  });

  it('refuses where Redis came back older once more after the plan was shown', async () => {
    await journalOf(dir, 1);
    const { redis, keys } = rig.account.connection;
    await rig.account.ledger.enqueue([aPayout('open')]);
    const review = async (plan: AdoptionPlan): Promise<void> => {
      expect(plan).toMatchObject({ holdsSendable: true, sendable: 1 });
      await redis.xdel(keys.events, plan.bookmark);
    };
    const refused = rig.operator.adoptLedger({ journalDirs: [dir], giveUp: ['unwitnessed'], review }, ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    expect((await readSenderView(rig.account.connection)).objections.length).toBeGreaterThan(0);
  });

  it('refuses a folder without a journal, an unknown one, and missing sends until given up', async () => {
    const adopt = async (folder: string, ...giveUp: string[]) =>
      rig.operator.adoptLedger({ journalDirs: [folder], giveUp }, ANN);
    await expect(adopt(dir)).rejects.toThrow(NotFoundError);
    await writeFile(join(dir, 'a-file'), '');
    await expect(adopt(join(dir, 'a-file'))).rejects.toMatchObject({ problems: [{ field: 'journalDirs' }] });
    await journalOf(dir, 3);
    await expect(adopt(dir, 'j-nobody')).rejects.toThrow(/^giveUp: must be the id of a journal .* \(got "j-nobody"\)$/);
    const message = /no journal has the sends number 1 to 2\. Name the journals .* journalDirs/;
    await expect(adopt(dir)).rejects.toMatchObject({ code: 'CONFLICT', message: expect.stringMatching(message) });
    expect(await rig.account.ledger.get('p-3')).toBeUndefined();
    const { adoption } = await adopt(dir, 'unwitnessed');
    expect(adoption).toMatchObject({ adopted: [{ payoutId: 'p-3', state: 'unknown' }] });
  });
});

describe('an operator with a key', () => {
  const ACCOUNT = { payoutId: '', intent: '', attempt: undefined } as const;
  let account: OperatorRig['account'];
  let keys: TestKeys;
  let entry: KeyEntry;
  let signer: Signer;
  let operator: PayoutOperator;

  beforeEach(async () => {
    ({ account } = rig);
    keys = await openTestKeys();
    const key = await keys.makeKey('ann');
    entry = { name: 'ann-laptop', role: 'operator', person: 'Ann', public: key.public };
    signer = openSigner(key.file, { keyring: keyringOf(entry), role: 'operator' });
    operator = operatorWith(signer);
  });
  afterEach(async () => {
    await operator.close();
    await keys.close();
  });

  const operatorWith = (of: Signer): PayoutOperator =>
    new PayoutOperator({
      platformId: account.platformId,
      redisUrl: testRedisUrl(),
      signer: of,
      audience: TEST_AUDIENCE,
    });

  const verify = (text: string | undefined, wanted: WantedAct) =>
    verifyAct(account.platformId, requireAct(text), wanted, keyringOf(entry), Date.now());

  async function wantedOf(payoutId: string, attempt: number): Promise<WantedAct> {
    const payout = await account.ledger.require(payoutId);
    return { act: 'resend', payoutId, intent: intentHashOf(account.platformId, payout), attempt };
  }

  it.each([
    ['retry', 'rejected', async () => operator.retry('p', ANN)],
    [
      'resolve as not sent',
      'unknown',
      async () => {
        const { attempt } = await account.ledger.require('p');
        return operator.resolve({ payoutId: 'p', attempt }, { kind: 'not_sent' }, ANN);
      },
    ],
  ] as const)('signs a %s: it names the intent and the attempt that paid nothing', async (_, state, decide) => {
    await sendSigned(account.ledger, state, 'p');
    const payout = await decide();
    expect(payout).toMatchObject({ state: 'queued' });
    const wanted = await wantedOf('p', 1);
    expect(verify(payout.act, wanted)).toMatchObject({ kind: 'verified', person: 'ann' });
    expect(verify(payout.act, { ...wanted, attempt: 2 })).toMatchObject({ kind: 'refused' });
    expect(requireAct(payout.act)).toMatchObject({ by: 'ann-laptop', reason: 'ticket 812' });
    // Each attempt by itself.
    await sendOnce(account.ledger, state, 'p');
    expect(verify((await decide()).act, await wantedOf('p', 2))).toMatchObject({ kind: 'verified' });
  });

  it('signs of a held payout the attempt that it is told', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const { redis, keys: ledgerKeys } = account.connection;
    await redis.hset(ledgerKeys.payout('p'), { state: 'held', attempt: '0' });
    for (const unpaidAttempt of [0, 1.5, NaN])
      await expect(operator.release('p', ANN, { unpaidAttempt })).rejects.toThrow(
        `unpaidAttempt: must be a whole number from 1 on, not ${unpaidAttempt}`,
      );
    const unsigned = rig.operator.release('p', ANN, { unpaidAttempt: 1 });
    await expect(unsigned).rejects.toThrow(/unpaidAttempt: .* a signer/);
    const payout = await operator.release('p', ANN, { unpaidAttempt: 1 });
    expect(verify(payout.act, await wantedOf('p', 1))).toMatchObject({ kind: 'verified' });
  });

  it('signs nothing about a payout that is unsigned, elsewhere, or sent again', async () => {
    await account.ledger.enqueue([aPayout('bare'), aPayout('fresh')]);
    await sendOnce(account.ledger, 'rejected', 'bare');
    const refused = operator.retry('bare', ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    await expect(refused).rejects.toThrow(/^Payout bare carries no signature of a producer.*cancel it and enqueue/);
    await expect(operator.retry('fresh', ANN)).rejects.toThrow(/^Cannot move payout fresh from queued to queued/);
    await sendSigned(account.ledger, 'unknown', 'p');
    const decided = { payoutId: 'p', attempt: 2 };
    await expect(operator.resolve(decided, { kind: 'not_sent' }, ANN)).rejects.toThrow(/was sent again meanwhile/);
    for (const payoutId of ['bare', 'fresh', 'p']) {
      expect((await account.ledger.require(payoutId)).act).toBeUndefined();
    }
  });

  it('changes nothing where the signature is not given', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    await account.ledger.pause('ann', 'look');
    const other = operatorWith({ ...signer, sign: async () => Promise.reject(new errors.StoppedError('not touched')) });
    await expect(other.retry('p', ANN)).rejects.toThrow('not touched');
    await expect(other.resume(ANN)).rejects.toThrow('not touched');
    await other.close();
    expect(await account.ledger.require('p')).toMatchObject({ state: 'rejected' });
    expect((await readSenderView(account.connection)).pausedReason).toBe('look');
  });

  it('signs a resume, also where the ledger knows of no pause', async () => {
    await operator.pause(ANN);
    expect(await operator.resume(ANN)).toMatchObject({ changed: true });
    const first = (await readSenderView(account.connection)).resumeAct;
    expect(verify(first, { act: 'resume', ...ACCOUNT })).toMatchObject({ kind: 'verified', person: 'ann' });
    expect(await operator.resume({ ...ANN, reason: 'again' })).toMatchObject({ changed: false });
    const second = (await readSenderView(account.connection)).resumeAct;
    expect(requireAct(second).reason).toBe('again');
    expect(verify(second, { act: 'adopt', ...ACCOUNT })).toMatchObject({ kind: 'refused' });
  });

  it('signs an adoption, after its review', async () => {
    const { dir } = keys;
    await journalOf(dir, 1);
    const review = async () => Promise.reject(new errors.StoppedError('no'));
    await expect(operator.adoptLedger({ journalDirs: [dir], review }, ANN)).rejects.toThrow(errors.StoppedError);
    expect((await readSenderView(account.connection)).adoptAct).toBeUndefined();
    await operator.adoptLedger({ journalDirs: [dir] }, ANN);
    const { adoptAct } = await readSenderView(account.connection);
    expect(verify(adoptAct, { act: 'adopt', ...ACCOUNT })).toMatchObject({ kind: 'verified', person: 'ann' });
  });

  it('signs of a decision about many payouts an act for each', async () => {
    await sendSigned(account.ledger, 'rejected', 'p', 'q');
    await account.ledger.enqueue([aPayout('bare')]);
    await sendOnce(account.ledger, 'rejected', 'bare');
    const payouts = [{ payoutId: 'p', attempt: 1 }, { payoutId: 'bare' }, { payoutId: 'nobody' }, { payoutId: 'q' }];
    const found = await change({ ...RETRY, payouts }, new SignedDecisions({ signer, audience: TEST_AUDIENCE }));
    expect(found.map((error) => error?.message.split(':')[0])).toEqual([
      ...[undefined, expect.stringMatching(/^Payout bare carries no signature/), 'Payout nobody not found', undefined],
    ]);
    for (const payoutId of ['p', 'q']) {
      const { act, state } = await account.ledger.require(payoutId);
      expect(state).toBe('queued');
      expect(verify(act, await wantedOf(payoutId, 1))).toMatchObject({ kind: 'verified' });
    }
    expect((await account.ledger.require('bare')).state).toBe('rejected');
  });
});
