import { beforeEach, describe, expect, it } from '@jest/globals';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { cutFromRedis, LEASE_MS, LoopWorld } from '../support/loop-rig.js';
import { journaled, throwing } from '../support/send-rig.js';

/** Two hosts, each with a journal of its own: what one of them alone knows. */

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

const QUARANTINE_MS = 10_000;

describe('a Redis that comes back as it was when one host had given the lease back, and another has sent since', () => {
  /**
   * Host B, of which the ledger says that it sent last, takes the lease at once; host A has sent p1 since, and its link
   * to Redis comes back later.
   * @returns how often p1 was sent by each
   */
  const comeBack = async (journalOfB: () => MemoryJournal, laterMs: number): Promise<{ a: number; b: number }> => {
    for (const id of ['p0', 'p1']) world.ledger.enqueue(aPayout(id));
    const settings = { quarantineMs: QUARANTINE_MS };
    const first = world.make({ name: 'B', journal: journalOfB(), ...settings, work: world.sendQueued('p0') });
    first.gateway.outcome = { kind: 'accepted', txhash: 'h0', durationMs: 100 };
    first.start();
    await world.advance(LEASE_MS + QUARANTINE_MS + 5_000);
    expect(await world.stateOf('p0')).toBe('in_progress');
    first.stop.abort();
    await first.ended();
    const copy = world.ledger.snapshot();

    const a = world.start({ name: 'A', ...settings, work: world.sendQueued('p1') });
    await world.advance(LEASE_MS + QUARANTINE_MS + 5_000);
    expect(await world.stateOf('p1')).toBe('in_progress');
    const b = world.start({ name: 'B2', journal: journalOfB(), ...settings, work: world.sendQueued('p1') });
    await world.advance(2_000);
    const [joinA, joinB] = [cutFromRedis(a), cutFromRedis(b)];
    await world.advance(2_000);
    world.ledger.restore(copy);
    joinB();
    await world.advance(laterMs);
    joinA();
    await world.advance(60_000);
    return { a: a.gateway.arrivals.length, b: b.gateway.arrivals.length };
  };

  it.each([0, 1_500, 3_000])('has nothing sent twice where the link of the other is back %i ms later', async (ms) => {
    const journal = new MemoryJournal('j-B');
    expect(await comeBack(() => journal, ms)).toEqual({ a: 1, b: 0 });
  });
});

describe('a response that only the journal of one host knows', () => {
  /** The response came when Redis was unavailable, and its process had to end. @returns the journal of A */
  const responseWithoutRedis = async (): Promise<MemoryJournal> => {
    const { epoch, attempt } = await world.earlierSend({ journalId: 'j-A' });
    const { ledgerId } = await world.ledger.readSender();
    return new MemoryJournal('j-A', [
      { ledgerId, epoch, sends: 0, token: '' },
      journaled(attempt),
      { ...attempt, outcome: { kind: 'accepted', txhash: 'h' }, at: 0 },
    ]);
  };

  it('is told to the ledger while another host has the lease', async () => {
    const journal = await responseWithoutRedis();
    world.start({ name: 'B' });
    await world.advance(LEASE_MS + 5_000);
    expect(await world.stateOf('p')).toBe('unknown');
    const a = world.start({ name: 'A', journal });
    await world.advance(60_000);
    expect(a.loop.status.role).toBe('standby');
    expect(await world.stateOf('p')).toBe('in_progress');
  });

  it('keeps nobody from sending where Redis refuses it, and that is said', async () => {
    const journal = await responseWithoutRedis();
    const b = world.start({ name: 'B' });
    await world.advance(LEASE_MS + 5_000);
    b.stop.abort();
    await b.ended();
    const a = world.make({ name: 'A', journal });
    a.before.finishSend = throwing('ERR wrong kind of value');
    a.start();
    await world.advance(60_000);
    expect(a.loop.status.role).toBe('sender');
    expect(a.said).toContain('error cannot record an outcome of the send journal');
  });
});
