import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { cutFromRedis, endAll, LEASE_MS, makeLoop, makeLoopWorld, type LoopWorld } from '../support/loop-rig.js';
import { journaled } from '../support/send-rig.js';

/** Two hosts, each with a journal of its own: what one of them alone knows. */

let world: LoopWorld;
beforeEach(() => {
  world = makeLoopWorld();
});
afterEach(async () => endAll(world));

const ANN = { by: 'ann', reason: 'restored a copy' };
const QUARANTINE_MS = 10_000;

const advance = async (ms: number): Promise<void> => world.clock.advance(ms);
const stateOf = async (payoutId: string) => (await world.ledger.readPayout(payoutId))?.state;

/** Sends this payout whenever it is queued, and returns what the sender objects to. */
const sendQueued =
  (payoutId: string) =>
  async ({ sender, onMismatch }: ActiveSender, end: AbortSignal): Promise<void> => {
    while (!end.aborted) {
      if ((await stateOf(payoutId)) === 'queued') {
        const report = await sender.send(payoutId, end).catch(() => undefined);
        if (report?.kind === 'ledger_mismatch') onMismatch(report.mismatch);
      }
      await world.clock.sleep(200, end);
    }
  };

/** A sender that is gone has begun the first attempt of `p`, under this journal. */
async function begunWith(journalId: string): Promise<{ epoch: number; attempt: SendAttempt }> {
  const { ledger } = world;
  const journal = { ...JOURNAL, journalId };
  ledger.enqueue(aPayout('p'));
  const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), journal, 0)) ?? 0;
  const asked = { ...(await nextBegin(ledger, { owner: 'earlier', epoch }, 'p')), journal };
  await ledger.beginSend(asked);
  return { epoch, attempt: { payoutId: 'p', attempt: 1, token: asked.token } };
}

describe('a Redis that comes back as it was when one host had given the lease back, and another has sent since', () => {
  /**
   * Host B, of which the ledger says that it sent last, takes the lease at once; host A has sent p1 since, and its link
   * to Redis comes back later.
   * @returns how often p1 was sent by each
   */
  const comeBack = async (journalOfB: () => MemoryJournal, laterMs: number): Promise<{ a: number; b: number }> => {
    for (const id of ['p0', 'p1']) world.ledger.enqueue(aPayout(id));
    const settings = { quarantineMs: QUARANTINE_MS };
    const first = makeLoop(world, { name: 'B', journal: journalOfB(), ...settings, work: sendQueued('p0') });
    first.gateway.outcome = { kind: 'accepted', txhash: 'h0', durationMs: 100 };
    first.start();
    await advance(LEASE_MS + QUARANTINE_MS + 5_000);
    expect(await stateOf('p0')).toBe('in_progress');
    first.stop.abort();
    await first.ended();
    const copy = world.ledger.snapshot();

    const a = makeLoop(world, { name: 'A', ...settings, work: sendQueued('p1') });
    a.start();
    await advance(LEASE_MS + QUARANTINE_MS + 5_000);
    expect(await stateOf('p1')).toBe('in_progress');
    const b = makeLoop(world, { name: 'B2', journal: journalOfB(), ...settings, work: sendQueued('p1') });
    b.start();
    await advance(2_000);
    const [joinA, joinB] = [cutFromRedis(a), cutFromRedis(b)];
    await advance(2_000);
    world.ledger.restore(copy);
    joinB();
    await advance(laterMs);
    joinA();
    await advance(60_000);
    return { a: a.gateway.arrivals.length, b: b.gateway.arrivals.length };
  };

  it.each([0, 1_500, 3_000])('has nothing sent twice where the link of the other is back %i ms later', async (ms) => {
    const journal = new MemoryJournal('j-B');
    expect(await comeBack(() => journal, ms)).toEqual({ a: 1, b: 0 });
  });

  it('has nothing sent twice where the first host has a new journal', async () => {
    let count = 0;
    expect(await comeBack(() => new MemoryJournal(`j-B${(count += 1)}`), 3_000)).toEqual({ a: 1, b: 0 });
  });
});

describe('a response that only the journal of one host knows', () => {
  /** The response came when Redis was unavailable, and its process had to end. @returns the journal of A */
  const responseWithoutRedis = async (): Promise<MemoryJournal> => {
    const { epoch, attempt } = await begunWith('j-A');
    const { ledgerId } = await world.ledger.readSender();
    return new MemoryJournal('j-A', [
      { ledgerId, epoch, sends: 0, token: '' },
      journaled(attempt),
      { ...attempt, outcome: { kind: 'accepted', txhash: 'h' }, at: 0 },
    ]);
  };

  it('is told to the ledger while another host has the lease', async () => {
    const journal = await responseWithoutRedis();
    makeLoop(world, { name: 'B' }).start();
    await advance(LEASE_MS + 5_000);
    expect(await stateOf('p')).toBe('unknown');
    const a = makeLoop(world, { name: 'A', journal });
    a.start();
    await advance(60_000);
    expect(a.loop.status.role).toBe('standby');
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('is told once the payout is not being sent any more', async () => {
    const journal = await responseWithoutRedis();
    // Both wait for the lease, while the payout is still being sent; B gets it.
    makeLoop(world, { name: 'B' }).start();
    const a = makeLoop(world, { name: 'A', journal });
    a.start();
    await advance(60_000);
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('keeps nobody from sending where Redis refuses it, and that is said', async () => {
    const journal = await responseWithoutRedis();
    const b = makeLoop(world, { name: 'B' });
    b.start();
    await advance(LEASE_MS + 5_000);
    b.stop.abort();
    await b.ended();
    const a = makeLoop(world, { name: 'A', journal });
    a.before.finishSend = () => {
      throw new Error('ERR wrong kind of value');
    };
    a.start();
    await advance(60_000);
    expect(a.loop.status.role).toBe('sender');
    expect(a.said).toContain('error cannot record an outcome of the send journal');
  });

  it('is no word about the attempt of another host, where it is a rejection', async () => {
    const { ledger } = world;
    // In the timeline that is lost, which only A has, attempt 1 was rejected. In this one it got no response.
    const { epoch, attempt } = await begunWith('j-one');
    await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, NO_BREAKER, 0);
    const { ledgerId } = await ledger.readSender();
    const outcome = { kind: 'rejected', message: 'no balance' } as const;
    const send = journaled({ payoutId: 'p', attempt: 1, token: 'of-A' });
    const journal = new MemoryJournal('j-A', [
      { ledgerId, epoch: 1, sends: 0, token: '' },
      send,
      { payoutId: 'p', attempt: 1, token: 'of-A', outcome, at: 0 },
    ]);
    await ledger.adoptSends([{ ...send, outcome }], { ...ANN, doubtMs: 0 });
    const read = [JOURNAL, { ...JOURNAL, journalId: 'j-A' }];
    const {
      epoch: raised,
      sendCount,
      token,
    } = await ledger.adoptLedger({ epoch, sendCount: 1 }, { read, givenUp: [] });
    await journal.bind({ ledgerId, epoch: raised, sends: sendCount, token, adopted: true });
    const a = makeLoop(world, { name: 'A', journal });
    a.start();
    await advance(LEASE_MS + 5_000);
    expect(a.loop.status.role).toBe('sender');
    expect(await stateOf('p')).toBe('unknown');
  });
});
