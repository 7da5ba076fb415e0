import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { openFormerAccounts, PLAIN, type FormerAccounts } from './support/former-accounts.js';

/** As gateways may write what they were given in another spelling. */
const SPELLINGS: Readonly<Record<string, string>> = {
  BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a': 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
  'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N:4711': 'UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI:4711',
  'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe:00123': 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe:123',
};

const FOLLOWED = ['P-followed', 'P-cash-followed', 'P-ton-followed', 'P-xrp-followed'];
const QUEUED = ['P-tron', 'P-segwit', 'P-cash', 'P-ton', 'P-xrp', 'P-ether'];
const CAPITAL_TXHASH = '0xABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789';

const STATES = {
  ...{ 'P-paid': 'completed', 'P-failed': 'failed', 'P-rejected': 'rejected', 'P-held': 'held' },
  ...{ 'P-unknown': 'unknown', 'P-again': 'unknown', 'P-written-off': 'cancelled', 'P-cancelled': 'cancelled' },
  ...{ 'P-vouched': 'in_progress', 'P-sending': 'sending', 'P-later': 'queued' },
  ...Object.fromEntries(FOLLOWED.map((payoutId) => [payoutId, 'in_progress'])),
  ...Object.fromEntries(QUEUED.map((payoutId) => [payoutId, 'queued'])),
};

interface Listed {
  readonly payoutId: string;
  readonly state: string;
  readonly addressTo: string;
  readonly amount: string;
}

interface DoctorReport {
  readonly checks: readonly { readonly name: string; readonly status: string }[];
}

let former: FormerAccounts;
afterEach(async () => former.close());

describe('an account without keys that the former version left', () => {
  beforeEach(async () => {
    former = await openFormerAccounts();
  });

  it('is shown whole', async () => {
    for (const [payoutId, state] of Object.entries(STATES)) {
      expect(await former.read(PLAIN, 'get', payoutId)).toMatchObject({ payoutId, state });
    }
    expect(await former.read(PLAIN, 'stats')).toMatchObject({ queued: 7, in_progress: 5, held: 1, sending: 1 });
    expect(await former.read(PLAIN, 'stats', '--batch', 'october')).toMatchObject({
      queued: 2,
      failed: 1,
      rejected: 1,
    });
    const { stdout: listed } = await former.run(PLAIN, ['list', '--state', 'queued', '--all', '--json']);
    expect(linesOf<Listed>(listed).map(({ payoutId }) => payoutId)).toEqual(expect.arrayContaining(QUEUED));
    const { stdout: csv } = await former.run(PLAIN, ['list', '--batch', 'october', '--all', '--csv']);
    expect(csv.trim().split('\n')).toHaveLength(5);
    const { stdout: removed } = await former.run(PLAIN, ['list', '--archived', '--json']);
    expect(linesOf<Listed>(removed)).toMatchObject([{ payoutId: 'P-old', state: 'completed' }]);
    expect(await former.read(PLAIN, 'get', 'P-old')).toMatchObject({ state: 'completed' });
    expect((await former.run(PLAIN, ['events'])).stdout).toContain('P-vouched');
    expect((await former.run(PLAIN, ['activity'])).stdout).toContain('found in the records');
  });

  it('has its pages in the dashboard', async () => {
    const payouts = Object.keys(STATES).map((payoutId) => `/payouts/${payoutId}`);
    const [overview, held, list, ...pages] = await former.readPages(PLAIN, [
      ...['/payouts', '/held', '/payouts?state=queued', ...payouts],
      ...['/batch?name=october', '/activity', '/audit', '/policy', '/metrics', '/payouts.csv?state=queued'],
    ]);
    expect(overview).toContain('4242');
    expect(held).toContain('P-held');
    expect(list).toContain('P-ether');
    for (const [index, payoutId] of Object.keys(STATES).entries()) expect(pages[index]).toContain(payoutId);
  });

  it('is found by its addresses and transactions', async () => {
    const find = async (...args: string[]) =>
      linesOf<Listed>((await former.run(PLAIN, ['list', ...args, '--all', '--json'])).stdout).map(
        ({ payoutId }) => payoutId,
      );
    expect((await find('--address', 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4')).sort()).toEqual([
      'P-followed',
      'P-segwit',
    ]);
    const cash = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
    expect((await find('--address', cash)).sort()).toEqual(['P-cash', 'P-cash-followed']);
    expect(await find('--address', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe:00123')).toEqual(['P-xrp-followed']);
    expect((await find('--address', cash.slice('bitcoincash:'.length))).sort()).toEqual(['P-cash', 'P-cash-followed']);
    for (const txhash of [CAPITAL_TXHASH, CAPITAL_TXHASH.toLowerCase()]) {
      expect(await former.read(PLAIN, 'get', '--txhash', txhash)).toMatchObject({ payoutId: 'P-vouched' });
    }
  });

  it('passes the audit and the doctor', async () => {
    expect(await former.read(PLAIN, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
    const { checks } = JSON.parse((await former.run(PLAIN, ['doctor', '--json'], [1])).stdout) as DoctorReport;
    expect(checks.filter(({ status }) => status === 'problem').map(({ name }) => name)).toEqual(['sender']);
  });
});

describe('a worker on that account', () => {
  beforeEach(async () => {
    former = await openFormerAccounts({ spell: (address) => SPELLINGS[address] ?? address });
  });

  it('sends what is queued, once, and follows what is in progress, however its address is spelled', async () => {
    const before = new Map<string, Listed>();
    for (const payoutId of QUEUED) before.set(payoutId, await former.read(PLAIN, 'get', payoutId));
    former.startWorker(PLAIN);
    await former.untilStates(PLAIN, Object.fromEntries([...FOLLOWED, ...QUEUED].map((id) => [id, 'completed'])));
    await former.untilStates(PLAIN, { 'P-sending': 'unknown', 'P-held': 'held', 'P-later': 'queued' });
    const paid = former.sandbox.payments(PLAIN).map(({ addressTo, amount }) => ({ addressTo, amount }));
    expect(paid).toHaveLength(QUEUED.length);
    expect(paid).toEqual(
      expect.arrayContaining([...before.values()].map(({ addressTo, amount }) => ({ addressTo, amount }))),
    );
    await former.run(PLAIN, ['doctor']);
    expect(former.sandbox.stats(PLAIN)).toMatchObject({ blocked: false, duplicatePayments: [] });
    // From now on the ledger is that of one gateway.
    expect(await former.redis.hget(`{payouts:${PLAIN}}:ledger`, 'audience')).toBe(TEST_AUDIENCE);
    for (const payoutId of ['P-unknown', 'P-again', 'P-rejected', 'P-failed', 'P-written-off']) {
      expect(await former.stateOf(PLAIN, payoutId)).toBe(STATES[payoutId as keyof typeof STATES]);
    }
    expect(await former.read(PLAIN, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
  });

  it('lets operators decide about what the former version left open', async () => {
    former.startWorker(PLAIN);
    await former.untilStates(PLAIN, { 'P-tron': 'completed', 'P-sending': 'unknown' });
    const why = ['--reason', 'after the upgrade'];
    await former.run(PLAIN, ['release', 'P-held', ...why]);
    await former.run(PLAIN, ['retry', 'P-rejected', ...why]);
    await former.run(PLAIN, ['cancel', 'P-later', ...why]);
    await former.untilStates(PLAIN, { 'P-held': 'completed', 'P-rejected': 'completed', 'P-later': 'cancelled' });
    const [txhash = ''] = [...former.payments].find(([, { amount }]) => amount === '9') ?? [];
    await former.run(PLAIN, ['resolve', 'P-unknown', '--sent', '--txhash', txhash, ...why]);
    await former.untilStates(PLAIN, { 'P-unknown': 'completed' });
    for (const txhash of [CAPITAL_TXHASH, CAPITAL_TXHASH.toLowerCase()]) {
      await former.run(PLAIN, ['resolve', 'P-again', '--sent', '--txhash', txhash, '--force', ...why], [4]);
    }
  });
});

function linesOf<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
