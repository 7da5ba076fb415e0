import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import {
  cutFromRedis,
  endAll,
  LEASE_MS,
  makeLoop,
  makeLoopWorld,
  type LoopRig,
  type LoopWorld,
} from '../support/loop-rig.js';

/** A process that is to stop, or hands its account over, while its send waits for the response. */

let world: LoopWorld;
beforeEach(() => {
  world = makeLoopWorld();
});
afterEach(async () => endAll(world));

const QUARANTINE_MS = 10_000;
const RESPONSE_MS = 25_000;

const advance = async (ms: number): Promise<void> => world.clock.advance(ms);
const stateOf = async (payoutId: string) => (await world.ledger.readPayout(payoutId))?.state;

/** Sends `p` whenever it is queued, and returns what the sender objects to. */
const sendQueued = async ({ sender, onMismatch }: ActiveSender, end: AbortSignal): Promise<void> => {
  while (!end.aborted) {
    if ((await stateOf('p')) === 'queued') {
      const report = await sender.send('p', end).catch(() => undefined);
      if (report?.kind === 'ledger_mismatch') onMismatch(report.mismatch);
    }
    await world.clock.sleep(200, end);
  }
};

/** Host A has written the request for `p`, and waits for its response, when it is asked to stop; host B stands by. */
async function stopWhileSending(): Promise<{ a: LoopRig; b: LoopRig; restore: () => void }> {
  const settings = { quarantineMs: QUARANTINE_MS, work: sendQueued };
  const a = makeLoop(world, { name: 'A', ...settings });
  a.gateway.responseMs = RESPONSE_MS;
  a.start();
  await advance(LEASE_MS + QUARANTINE_MS + 2_000);
  const copy = world.ledger.snapshot();
  world.ledger.enqueue(aPayout('p'));
  const withPayout = world.ledger.snapshot();
  await advance(2_000);
  expect(await stateOf('p')).toBe('sending');
  expect(a.gateway.arrivals).toHaveLength(1);
  const b = makeLoop(world, { name: 'B', ...settings });
  b.start();
  await advance(1_000);
  a.stop.abort();
  await advance(1_000);
  const restore = (): void => {
    world.ledger.restore({ ...withPayout, lease: copy.lease });
  };
  return { a, b, restore };
}

describe('a process that is to stop while its send waits for the response', () => {
  it('objects where Redis comes back older meanwhile, so that no other host sends it again', async () => {
    const { a, b, restore } = await stopWhileSending();
    restore();
    await advance(5_000);
    const { objections } = await world.ledger.readSender();
    expect(objections.map(({ journalId }) => journalId)).toEqual(['j-A']);
    await advance(120_000);
    await a.ended();
    expect(b.gateway.arrivals).toHaveLength(0);
  });

  it('objects also where Redis can be reached again only later', async () => {
    const { a, b, restore } = await stopWhileSending();
    const join = [cutFromRedis(a), cutFromRedis(b)];
    await advance(2_000);
    restore();
    for (const each of join) each();
    await advance(120_000);
    await a.ended();
    expect(b.gateway.arrivals).toHaveLength(0);
  });

  it('ends with its response, and gives the lease back, where nothing happens', async () => {
    const { a, b } = await stopWhileSending();
    await a.ended();
    expect(world.clock.now()).toBeLessThan(LEASE_MS + QUARANTINE_MS + RESPONSE_MS + 10_000);
    await advance(60_000);
    expect((await world.ledger.readSender()).objections).toEqual([]);
    expect(await stateOf('p')).toBe('in_progress');
    expect(b.gateway.arrivals).toHaveLength(0);
  });
});
