import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import picocolors from 'picocolors';
import { DEMO_FILE, readDemoPayouts } from '../../../src/cli/demo/demo-command.js';
import { matchPayments, summarise, type DemoOutcome } from '../../../src/cli/demo/demo-summary.js';
import { formatMoment } from '../../../src/cli/demo/demo-view.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import type { Payment } from '../../../src/sandbox/index.js';

function aPayout(payoutId: string, state: PayoutState, more: Partial<Payout> = {}): Payout {
  const sent = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', attempt: 1, requeueCount: 0 };
  return { payoutId, state, ...sent, createdAt: '', updatedAt: '', history: [], ...more };
}

function aPayment(txhash: string, amount = '12.5'): Payment {
  return { txhash, paymentId: 6, addressTo: 'TXYZ9', amount, fee: '1', acceptedAtMs: 0, settlesAs: 1 };
}

describe('summarise', () => {
  const COMPLETED = aPayout('p-1', 'completed', { txhash: 't-1' });
  const UNKNOWN = aPayout('p-2', 'unknown', { message: 'cut off' });
  const sandbox = { smallestGapMs: 1_000, meanGapMs: 1_250, blockedReason: null };
  const summaryOf = (outcome: Partial<DemoOutcome>): ReturnType<typeof summarise> =>
    summarise({
      ...{ payouts: [COMPLETED], payments: [aPayment('t-1')], sandbox, pausedReason: undefined },
      ...{ chaos: false, workerKills: 0, durationMs: 30_000, ...outcome },
    });

  it('is ok if all are completed, none too fast and none twice', () => {
    expect(summaryOf({})).toMatchObject({ ok: true, problems: [], payouts: 1, sentTwice: 0, payoutsPerSecond: 0.8 });
  });

  it.each<[string, Partial<DemoOutcome>, RegExp]>([
    ['a gap under 1000 ms', { sandbox: { ...sandbox, smallestGapMs: 999.9 } }, /999 ms apart/],
    ['a block', { sandbox: { ...sandbox, blockedReason: 'too fast' } }, /too fast/],
    ['a payment too many', { payments: [aPayment('t-1'), aPayment('t-2')] }, /was made twice \(txhash t-2\)/],
    ['a pause', { pausedReason: '5 rejections in a row' }, /paused: 5 rejections/],
    ['an unfinished payout', { payouts: [aPayout('p-1', 'in_progress', { txhash: 't-1' })] }, /p-1 is in_progress/],
    ['an unknown payout without a kill', { payouts: [COMPLETED, UNKNOWN] }, /p-2 is unknown: cut off/],
  ])('is not content with %s', (_, outcome, problem) => {
    expect(summaryOf(outcome)).toMatchObject({ ok: false, problems: [expect.stringMatching(problem)] });
  });

  it('with chaos allows an unknown payout, with what the gateway shows and what to do', () => {
    const chaos = { chaos: true, workerKills: 3, payouts: [COMPLETED, UNKNOWN] };
    const resolve = 'payouts resolve --account 1001 p-2';
    const command = `${resolve} --sent --txhash t-2 --reason 'the gateway shows the payment'`;
    expect(summaryOf({ ...chaos, payments: [aPayment('t-1'), aPayment('t-2')] })).toMatchObject({
      ...{ ok: true, sentTwice: 0, unknown: [{ payoutId: 'p-2', txhash: 't-2', command }] },
    });
    const never = `${resolve} --not-sent --reason 'the gateway never received it'`;
    expect(summaryOf(chaos).unknown).toMatchObject([{ txhash: null, command: never }]);
  });
});

describe('matchPayments', () => {
  it('accepts two payouts of the same amount to the same recipient', () => {
    const payouts = [aPayout('p-1', 'completed', { txhash: 't-1' }), aPayout('p-2', 'in_progress', { txhash: 't-2' })];
    expect(matchPayments(payouts, [aPayment('t-1'), aPayment('t-2')])).toEqual({ ofUnknown: new Map(), surplus: [] });
  });

  it('assigns an unmatched payment to an unknown payout that fits, at most one to each', () => {
    const payouts = ['p-1', 'p-2', 'p-3'].map((payoutId) => aPayout(payoutId, 'unknown'));
    const other = aPayment('t-3', '9');
    const { ofUnknown, surplus } = matchPayments(payouts, [aPayment('t-1'), aPayment('t-2'), other]);
    expect([...ofUnknown].map(([payoutId, { txhash }]) => `${payoutId} ${txhash}`)).toEqual(['p-1 t-1', 'p-2 t-2']);
    expect(surplus).toEqual([other]);
  });

  it.each(['completed', 'queued', 'rejected'] as const)('reports a surplus payment for one that is %s', (state) => {
    const payouts = [aPayout('p-1', state, { txhash: 't-1' })];
    expect(matchPayments(payouts, [aPayment('t-1'), aPayment('t-2')]).surplus).toEqual([aPayment('t-2')]);
  });
});

describe('formatMoment', () => {
  const linesOf = (states: readonly PayoutState[], height: number): string[] => {
    const about = { amount: '12.5', addressTo: 'TXYZ9', gapMs: null };
    const rows = states.map((state, index) => ({ payoutId: `p-${index}`, state, ...about }));
    const moment = { rows, elapsedMs: 5_000, smallestGapMs: 1_021.9, meanGapMs: 1_200, workerPid: 7 };
    return formatMoment(moment, height, picocolors.createColors(false));
  };

  it('shows each payout, the count of each state, and the gaps rounded down', () => {
    const lines = linesOf(['completed', 'sending', 'queued'], 40);
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}p-0 +12\.5 {2}TXYZ9 +✔ completed/));
    expect(lines).toContainEqual(expect.stringContaining('1 queued, 1 sending, 1 completed'));
    expect(lines.at(-1)).toBe('  5 s  worker 7  smallest gap at the gateway 1021 ms, mean 1200 ms');
  });

  it.each([0, 50, 99, 100])('fits the terminal and shows the next payout, after %i of 100', (done) => {
    const states = Array.from({ length: 100 }, (_, index): PayoutState => (index < done ? 'completed' : 'queued'));
    const lines = linesOf(states, 24);
    expect(lines.length).toBeLessThan(24);
    expect(lines.join('\n')).toMatch(new RegExp(`^ {2}p-${Math.min(done, 99)} `, 'm'));
    expect(lines.join('\n')).toContain('… 100 payouts in total');
  });
});

describe('readDemoPayouts', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
  });
  afterAll(async () => rm(dir, { recursive: true }));

  const HEADER = 'payout_id,payment_id,amount,address_to,destination_tag,symbol,reference';
  const read = async (file: string, count?: number) => readDemoPayouts(file, new AbortController().signal, count);
  async function write(...lines: string[]): Promise<string> {
    await writeFile(join(dir, 'payouts.csv'), `${lines.join('\r\n')}\r\n`);
    return join(dir, 'payouts.csv');
  }

  it('reads the 20 payouts of the package, and repeats those of a file with new ids when more are wanted', async () => {
    const payouts = await read(DEMO_FILE);
    expect(payouts).toHaveLength(20);
    expect(payouts[4]).toMatchObject({ amount: '150.25', addressTo: expect.stringMatching(/:4711$/) });
    const file = await write(`\uFEFF${HEADER}`, 'a,6,1.50,T9,,USD,"Anna, October"', '', 'b,6,2,T8,,,');
    expect((await read(file, 1)).map(({ reference }) => reference)).toEqual(['Anna, October']);
    const five = (await read(file, 5)).map(({ payoutId, amount }) => `${payoutId} ${amount}`);
    expect(five).toEqual(['a 1.5', 'b 2', 'a-2 1.5', 'b-2 2', 'a-3 1.5']);
  });

  it('reports every problem of a file, and a missing one', async () => {
    const wrong = /payouts\.csv: line 2: amount: must be more than 0.*line 3: payment_id: must be/;
    await expect(read(await write(HEADER, 'a,6,0,T9,,,', 'b,six,1,T9,,,'))).rejects.toThrow(wrong);
    await expect(read(await write(HEADER))).rejects.toThrow(/payouts\.csv: contains no payouts/);
    await expect(read(join(dir, 'none.csv'))).rejects.toThrow(/cannot be read: ENOENT/);
  });
});
