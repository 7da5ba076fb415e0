import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { ResumeAuthority, ResumeVerdict } from '../../../src/worker/sender/send-authority.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { LEASE_MS, LoopWorld } from '../support/loop-rig.js';
import { throwing } from '../support/send-rig.js';
import { makeRuntime } from '../support/sender-runtime.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import { aPayout } from '../../ledger/support/a-payout.js';

/** The pause that a worker keeps in its journal, whatever Redis says. */

const REJECTED: WithdrawOutcome = { kind: 'rejected', message: 'no', durationMs: 5 };
const MISADDRESSED: WithdrawOutcome = { kind: 'rejected', message: 'unknown payment_id 9', durationMs: 5 };
const UNKNOWN: WithdrawOutcome = { kind: 'unknown', reason: 'timed out', durationMs: 5 };
const ACCEPTED: WithdrawOutcome = { kind: 'accepted', txhash: 'tx-1', durationMs: 5 };
const BLOCKED: WithdrawOutcome = { kind: 'rejected', message: 'Account is blocked', durationMs: 5 };

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

describe('what pauses', () => {
  it.each<[string, readonly WithdrawOutcome[], RegExp]>([
    ['as many rejections in a row as are allowed', [REJECTED, REJECTED, REJECTED], /3 rejected in a row/],
    ['also with others between', [REJECTED, UNKNOWN, REJECTED, MISADDRESSED, REJECTED], /3 rejected in a row$/],
    [
      'as many for their own data',
      [MISADDRESSED, REJECTED, ...Array<WithdrawOutcome>(3).fill(MISADDRESSED)],
      /4 rejected in a row for their own data/,
    ],
    ['as many unknowns', [UNKNOWN, UNKNOWN], /2 unknown in a row/],
    ['an account that the gateway blocked', [BLOCKED], /blocked/],
  ])('%s', async (_, found, reason) => {
    await outcomes(...found);
    expect(pause.reason).toMatch(reason);
  });

  it.each<[string, readonly WithdrawOutcome[]]>([
    ['one fewer', [REJECTED, REJECTED]],
    ['with an accepted one between', [REJECTED, REJECTED, ACCEPTED, REJECTED]],
    ['for their own data', [MISADDRESSED, MISADDRESSED, MISADDRESSED]],
    ['of several kinds', [REJECTED, UNKNOWN, REJECTED, UNKNOWN, MISADDRESSED, UNKNOWN, MISADDRESSED]],
  ])('not: %s', async (_, found) => {
    await outcomes(...found);
    expect(pause.reason).toBeUndefined();
  });

  it('is noted once, as of the moment it was seen, however late the journal takes it', async () => {
    const seenAt = clock.wallNow();
    pause.note('the first');
    clock.wallOffsetMs += 5_000;
    pause.note('the second');
    await pause.find();
    expect(journal.lines.filter((line) => 'paused' in line)).toEqual([{ paused: { at: seenAt, reason: 'the first' } }]);
  });
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
    expect(await pause.find()).toBeUndefined();
    expect(asked).toEqual([{ act: '{"act":"resume"}', pausedAt: journal.lines.flatMap(pausedAtOf)[0] }]);
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

function pausedAtOf(line: object): readonly number[] {
  return 'paused' in line ? [(line as { paused: { at: number } }).paused.at] : [];
}

describe('a sender loop', () => {
  const resumeAuthority: ResumeAuthority = {
    judgeResume: () => ({ kind: 'refused', message: 'there is no signed act' }),
  };

  it.each([true, false])('keeps a pause that its worker makes, which outlives it; with a send: %s', async (isSent) => {
    const world = new LoopWorld();
    const { clock, ledger } = world;
    ledger.enqueue(aPayout('p'));
    const ownJournal = new MemoryJournal('j-one');
    const runtime = makeRuntime({ clock, senderLedger: ledger, journal: ownJournal });
    const kept = new KeptPause(runtime, resumeAuthority);
    let report: SendReport | undefined;
    world.start({
      authority: { permit: throwing('a paused account asks for no permit') },
      ...{ journal: ownJournal, pause: kept },
      work: async ({ sender }, end) => {
        kept.note('looks like a block');
        if (isSent) report = await sender.send('p', end);
        await untilAborted(end);
      },
    });
    await world.advance(LEASE_MS + 1_000);
    expect(kept.reason).toBe('looks like a block');
    if (!isSent) return;
    // One that is missing in Redis holds all the same.
    expect(ownJournal.pausedReason).toBe('looks like a block');
    expect(report).toMatchObject({ kind: 'paused', reason: expect.stringContaining('not ended by a signed act') });
  });
});
