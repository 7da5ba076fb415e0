import { afterEach, expect, it } from '@jest/globals';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { openFormerAccounts, PLAIN, type FormerAccounts } from './support/former-accounts.js';

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
const CAPITAL_TXHASH = '0xABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789';
const TXHASHES = [CAPITAL_TXHASH, CAPITAL_TXHASH.toLowerCase()];

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
}

let former: FormerAccounts;
afterEach(async () => former.close());

it('an account without keys that the former version left is shown', async () => {
  former = await openFormerAccounts();
  for (const [payoutId, state] of Object.entries({ ...STATES, 'P-old': 'completed' })) {
    expect(await former.read(PLAIN, 'get', payoutId)).toMatchObject({ payoutId, state });
  }
  expect(await former.read(PLAIN, 'stats')).toMatchObject({ queued: 7, in_progress: 5, held: 1, sending: 1 });
  const found = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await former.run(PLAIN, ['list', ...args, '--json']);
    return [...stdout.matchAll(/"payoutId":"([^"]*)"/g)].map(([, id = '']) => id).sort();
  };
  expect(await found('--archived')).toEqual(['P-old']);
  expect(await found('--address', SEGWIT, '--all')).toEqual(['P-followed', 'P-segwit']);
  for (const cash of [CASH, `bitcoincash:${CASH}`]) {
    expect(await found('--address', cash, '--all')).toEqual(['P-cash', 'P-cash-followed']);
  }
  for (const txhash of TXHASHES) {
    expect(await former.read(PLAIN, 'get', '--txhash', txhash)).toMatchObject({ payoutId: 'P-vouched' });
  }
  expect(await former.read(PLAIN, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
});

it('a worker on that account sends what is queued, once, and follows what is in progress', async () => {
  former = await openFormerAccounts({ spell: (address) => SPELLINGS[address] ?? address });
  const paymentOf = ({ addressTo, amount }: Shown): Shown => ({ addressTo, amount });
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
  for (const taken of TXHASHES) {
    await former.run(PLAIN, ['resolve', 'P-again', '--sent', '--txhash', taken, '--force', ...why], [4]);
  }
});
