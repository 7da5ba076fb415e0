import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { ResumeVerdict } from '../../../src/worker/sender/send-authority.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { LoopWorld } from '../support/loop-rig.js';
import { LEASE_MS, makeRuntime, throwing } from '../support/send-rig.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import { aPayout } from '../../ledger/support/a-payout.js';

/** The pause that a worker keeps in its journal, whatever Redis says. */

const rejected = (message: string): WithdrawOutcome => ({ kind: 'rejected', message, durationMs: 5 });
const REJECTED = rejected('no');
const MISADDRESSED = rejected('unknown payment_id 9');
const BLOCKED = rejected('Account is blocked');
const UNKNOWN: WithdrawOutcome = { kind: 'unknown', reason: 'timed out', durationMs: 5 };
const ACCEPTED: WithdrawOutcome = { kind: 'accepted', txhash: 'tx-1', durationMs: 5 };

let clock: ManualClock;
let journal: MemoryJournal;
let verdict: ResumeVerdict;
let asked: { readonly act: string | undefined; readonly pausedAt: number }[];
let reported: number;
let inRedis: { pausedReason?: string; resumeAct?: string };
let pause: KeptPause;

beforeEach(() => {
  clock = new ManualClock();
  journal = new MemoryJournal();
  verdict = { kind: 'refused', message: 'there is no signed act' };
  [asked, reported, inRedis] = [[], 0, {}];
  const runtime = makeRuntime({
    clock,
    journal,
    senderLedger: { readSender: async () => Promise.resolve(inRedis) } as unknown as SenderLedger,
    settings: { maxRejectionsInARow: 3, maxPayoutRejectionsInARow: 4 },
    observer: { ...noObserver, signatureRefused: () => (reported += 1) },
  });
  pause = new KeptPause(runtime, {
    judgeResume: (act, pausedAt) => {
      asked.push({ act, pausedAt });
      return verdict;
    },
  });
});

async function outcomes(...found: readonly WithdrawOutcome[]): Promise<void> {
  for (const outcome of found) pause.noteOutcome(outcome);
  await pause.find();
}

it.each<[string, readonly WithdrawOutcome[], RegExp | undefined]>([
  ['rejections in a row', [REJECTED, UNKNOWN, REJECTED, MISADDRESSED, REJECTED], /^3 rejected in a row$/],
  [
    'rejections for their own data',
    [MISADDRESSED, REJECTED, MISADDRESSED, MISADDRESSED, MISADDRESSED],
    /^4 rejected .*own data/,
  ],
  ['as many unknowns', [UNKNOWN, UNKNOWN], /2 unknown in a row/],
  ['an account that the gateway blocked', [BLOCKED], /blocked/],
  ['one fewer', [REJECTED, REJECTED], undefined],
  ['with an accepted one between', [REJECTED, REJECTED, ACCEPTED, REJECTED], undefined],
  ['fewer for their own data', [MISADDRESSED, MISADDRESSED, MISADDRESSED], undefined],
  ['some of each kind', [REJECTED, UNKNOWN, REJECTED, UNKNOWN, MISADDRESSED, UNKNOWN, MISADDRESSED], undefined],
])('what pauses %s', async (_, found, reason) => {
  await outcomes(...found);
  expect(pause.reason ?? 'none').toMatch(reason ?? /^none$/);
});

it('what pauses is noted once, as of the moment it was seen, however late the journal takes it', async () => {
  const seenAt = clock.wallNow();
  pause.note('the first');
  clock.wallOffsetMs += 5_000;
  pause.note('the second');
  await pause.find();
  expect(journal.lines.filter((line) => 'paused' in line)).toEqual([{ paused: { at: seenAt, reason: 'the first' } }]);
});

describe('a kept pause that Redis does not know', () => {
  beforeEach(async () => {
    await outcomes(BLOCKED);
    asked = [];
  });

  it('stands, and is reported once', async () => {
    expect(await pause.find()).toMatch(/was not ended by a signed act: there is no signed act/);
    expect(await pause.find()).toMatch(/payouts resume --key/);
    expect(reported).toBe(1);
    expect(journal.pausedReason).toBeDefined();
  });

  it('ends by the act that counts, which the journal notes; the count begins again', async () => {
    verdict = { kind: 'accepted', actHash: 'a'.repeat(64) };
    inRedis = { resumeAct: '{"act":"resume"}' };
    const { pausedAt } = journal;
    expect(await pause.find()).toBeUndefined();
    expect(asked).toEqual([{ act: '{"act":"resume"}', pausedAt }]);
    expect(journal.lines.at(-1)).toEqual({ resumed: { at: clock.wallNow(), act: 'a'.repeat(64) } });
    await outcomes(REJECTED, REJECTED);
    expect(pause.reason).toBeUndefined();
  });

  it('is the reason of Redis while that has one: nobody is asked for an act', async () => {
    inRedis = { pausedReason: 'balance' };
    expect(await pause.find()).toBe('balance');
    expect(asked).toEqual([]);
  });
});

it('a pause that a worker makes outlives it, though Redis does not know of it', async () => {
  const world = new LoopWorld();
  const { ledger } = world;
  ledger.enqueue(aPayout('p'));
  const ownJournal = new MemoryJournal('j-one');
  const kept = new KeptPause(makeRuntime({ clock: world.clock, senderLedger: ledger, journal: ownJournal }), {
    judgeResume: () => ({ kind: 'refused', message: 'there is no signed act' }),
  });
  let report: SendReport | undefined;
  world.start({
    authority: { permit: throwing('a paused account asks for no permit') },
    ...{ journal: ownJournal, pause: kept },
    work: async ({ sender }, end) => {
      kept.note('looks like a block');
      report = await sender.send('p', end);
      await untilAborted(end);
    },
  });
  await world.advance(LEASE_MS + 1_000);
  expect(kept.reason).toBe('looks like a block');
  expect(ownJournal.pausedReason).toBe('looks like a block');
  expect(report).toMatchObject({ kind: 'paused', reason: expect.stringContaining('not ended by a signed act') });
});
