import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { type FormerAccounts, openFormerAccounts, PLAIN, SIGNED } from './support/former-accounts.js';

const SEGWIT = 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4';
const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const XRP = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';
/** As gateways may write what they were given in another spelling. */
const SPELLINGS: Readonly<Record<string, string>> = {
  [SEGWIT]: SEGWIT.toLowerCase(),
  [`bitcoincash:${CASH}`]: CASH,
  'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N:4711': 'UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI:4711',
  [`${XRP}:00123`]: `${XRP}:123`,
};

const FOLLOWED = ['P-followed', 'P-cash-followed', 'P-ton-followed', 'P-xrp-followed'];
const QUEUED = ['P-tron', 'P-segwit', 'P-cash', 'P-ton', 'P-xrp', 'P-ether'];

const statesOf = (payoutIds: readonly string[], state: string): Record<string, string> =>
  Object.fromEntries(payoutIds.map((payoutId) => [payoutId, state]));
/** What the former version's next start leaves as it is. */
const LEFT: Readonly<Record<string, string>> = {
  ...{ 'P-failed': 'failed', 'P-rejected': 'rejected', 'P-written-off': 'cancelled' },
  ...statesOf(['P-unknown', 'P-again'], 'unknown'),
};
const STATES = {
  ...LEFT,
  ...{ 'P-paid': 'completed', 'P-held': 'held', 'P-sending': 'sending', 'P-cancelled': 'cancelled' },
  ...statesOf(['P-vouched', ...FOLLOWED], 'in_progress'),
  ...statesOf(['P-later', ...QUEUED], 'queued'),
};

interface Shown {
  readonly addressTo: string;
  readonly amount: string;
  readonly held?: { readonly rule?: string; readonly until?: string };
}

let former: FormerAccounts;
afterEach(async () => former.close());

it('an account without keys is shown; a worker sends what is queued, once, and follows what is in progress', async () => {
  former = await openFormerAccounts({ spell: (address) => SPELLINGS[address] ?? address });
  for (const [payoutId, state] of Object.entries({ ...STATES, 'P-old': 'completed' })) {
    expect(await former.read(PLAIN, 'get', payoutId)).toMatchObject({ payoutId, state });
  }
  const found = async (...args: string[]) => {
    const { stdout } = await former.run(PLAIN, ['list', '--all', ...args, '--json']);
    return [...stdout.matchAll(/"payoutId":"([^"]*)"/g)].map(([, id = '']) => id).sort();
  };
  expect(await found('--address', SEGWIT)).toEqual(['P-followed', 'P-segwit']);
  for (const cash of [CASH, `bitcoincash:${CASH}`]) {
    expect(await found('--address', cash)).toEqual(['P-cash', 'P-cash-followed']);
  }

  const paymentOf = ({ addressTo, amount }: Shown) => ({ addressTo, amount });
  const before: Shown[] = [];
  for (const payoutId of QUEUED) before.push(await former.read(PLAIN, 'get', payoutId));
  former.startWorker(PLAIN);
  await former.untilStates(PLAIN, statesOf([...FOLLOWED, ...QUEUED], 'completed'));
  await former.untilStates(PLAIN, { ...LEFT, 'P-sending': 'unknown', 'P-held': 'held', 'P-later': 'queued' });
  const paid = former.sandbox.payments(PLAIN).map(paymentOf);
  expect(paid).toHaveLength(QUEUED.length);
  expect(paid).toEqual(expect.arrayContaining(before.map(paymentOf)));
  await former.run(PLAIN, ['doctor']);
  expect(former.sandbox.stats(PLAIN)).toMatchObject({ blocked: false, duplicatePayments: [] });
  // From now on the ledger is that of one gateway.
  expect(await former.redis.hget(`{payouts:${PLAIN}}:ledger`, 'audience')).toBe(TEST_AUDIENCE);
  expect(await former.read(PLAIN, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });

  // Operators decide about what the former version left open.
  const why = ['--reason', 'after the upgrade'];
  await former.run(PLAIN, ['release', 'P-held', ...why]);
  await former.run(PLAIN, ['retry', 'P-rejected', ...why]);
  await former.run(PLAIN, ['cancel', 'P-later', ...why]);
  await former.untilStates(PLAIN, { 'P-held': 'completed', 'P-rejected': 'completed', 'P-later': 'cancelled' });
  const [txhash = ''] = [...former.payments].find(([, { amount }]) => amount === '9') ?? [];
  await former.run(PLAIN, ['resolve', 'P-unknown', '--sent', '--txhash', txhash, ...why]);
  await former.untilStates(PLAIN, { 'P-unknown': 'completed' });
  const capital = '0xABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789';
  for (const taken of [capital, capital.toLowerCase()]) {
    await former.run(PLAIN, ['resolve', 'P-again', '--sent', '--txhash', taken, '--force', ...why], [4]);
  }
});

const signed = (ids: string) => ids.split(' ').map((id) => `S-${id}`);
const SIGNED_STATES = {
  ...statesOf(signed('paid approved again paused cash'), 'completed'),
  ...statesOf(signed('waiting rejected denied'), 'held'),
  ...statesOf(signed('unknown sending'), 'unknown'),
  ...{ 'S-followed': 'in_progress', 'S-cancelled': 'cancelled' },
  ...statesOf(signed('queued cash-known cash-new fits much more ton-much'), 'queued'),
};

const show = async (payoutId: string): Promise<Shown> => former.read(SIGNED, 'get', payoutId);
const keyOf = (who: string) => ['--key', join(former.control, `${who}.pem`)];

it('an account with keys and a policy is shown, stays paused until an operator signs, then sends what fits, once', async () => {
  former = await openFormerAccounts({ atItsTime: true });
  for (const [payoutId, state] of Object.entries({ ...SIGNED_STATES, 'S-old': 'completed' })) {
    const verified = state === 'completed' ? { verified: true } : {};
    expect(await show(payoutId)).toMatchObject({ payoutId, state, ...verified });
  }
  const stats = { queued: 7, held: 3, pausedReason: 'before the upgrade' };
  expect(await former.read(SIGNED, 'stats')).toMatchObject(stats);

  const worker = former.startWorker(SIGNED);
  await former.untilStates(SIGNED, { 'S-followed': 'completed' });
  expect(former.sandbox.payments(SIGNED)).toEqual([]);
  await former.run(SIGNED, ['resume', ...keyOf('olga'), '--reason', 'upgraded']);
  await former.untilStates(SIGNED, {
    ...statesOf(signed('queued fits much'), 'completed'),
    ...statesOf(signed('more ton-much cash-known cash-new denied rejected'), 'held'),
    ...statesOf(signed('unknown sending'), 'unknown'),
  });
  expect((await show('S-more')).held).toMatchObject({ rule: 'day' });
  expect((await show('S-ton-much')).held).toMatchObject({ rule: 'address-day' });
  // The former version noted both as "bitcoincash". Since when one is known follows from its send.
  const [known, unknown] = await Promise.all(['S-cash-known', 'S-cash-new'].map(show));
  expect([known?.held, unknown?.held]).toMatchObject([{ rule: 'cool-down' }, { rule: 'cool-down' }]);
  expect(Date.parse(known?.held?.until ?? '')).toBeLessThan(Date.parse(unknown?.held?.until ?? ''));
  expect(former.sandbox.stats(SIGNED)).toMatchObject({ blocked: false, payments: 3, duplicatePayments: [] });
  // What was approved in the former version names no payment, and is approved again.
  for (const who of ['ann', 'bob']) await former.run(SIGNED, ['approve', 'S-waiting', '--yes', ...keyOf(who)]);
  await former.untilStates(SIGNED, { 'S-waiting': 'completed' });
  worker.kill('SIGTERM');
  await worker.result;
  const { stdout } = await former.run(SIGNED, ['audit', 'verify', '--json'], [5]);
  const ofApproved = { payoutId: 'S-approved', kind: 'approval' };
  expect(JSON.parse(stdout)).toMatchObject({ faults: [], findings: [ofApproved, ofApproved] });
});
