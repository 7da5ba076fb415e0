import { expect, it } from '@jest/globals';
import { Random } from '../../doubles/random.js';
import { DOUBT_MS, HOURLY, policyOf, PolicyRig, TestClock } from './support.js';

/**
 * What the gateway sees: in every rolling window of arrivals the sum is at most the cap, whatever becomes of answers and
 * processes; and what fits is sent.
 */

const WINDOW_MS = 60_000;
const CAP = 100;
const POLICY = policyOf({ ...HOURLY, cap: { amount: String(CAP), within: '1m' } });

interface Arrival {
  readonly at: number;
  readonly amount: number;
}

/** The most that arrived in one window. */
function most(arrivals: readonly Arrival[]): number {
  const inWindow = ({ at: from }: Arrival): number =>
    arrivals.filter(({ at }) => at >= from && at < from + WINDOW_MS).reduce((sum, { amount }) => sum + amount, 0);
  return Math.max(0, ...arrivals.map(inWindow));
}

async function run(seed: number): Promise<{ most: number; waited: readonly number[] }> {
  const random = new Random(seed);
  const clock = new TestClock();
  const rig = new PolicyRig(clock, POLICY);
  const arrivals: Arrival[] = [];
  const waited: number[] = [];
  for (let number = 0; number < 40; number += 1) {
    const amount = random.whole(1, random.chance(0.2) ? CAP : 40);
    const payout = rig.payout(`p${number}`, String(amount));
    const askedAt = clock.now();
    let finish = await rig.begin(payout);
    for (; finish === undefined; finish = await rig.begin(payout)) {
      clock.pass(random.whole(200, 3_000));
      if (random.chance(0.05)) rig.restart();
    }
    waited.push(clock.now() - askedAt);
    const begunAt = clock.now();
    const arrivesAt = begunAt + random.between(0, random.chance(0.2) ? DOUBT_MS : 500);
    const isAnswered = random.chance(0.7);
    clock.pass((isAnswered ? arrivesAt - begunAt : 0) + random.between(1_000, 3_000));
    const isRejected = isAnswered && random.chance(0.2);
    if (!isRejected) arrivals.push({ at: arrivesAt, amount });
    if (isAnswered) finish(isRejected ? 'rejected' : 'accepted');
    else if (random.chance(0.5)) finish('unknown');
    else rig.restart();
    if (random.chance(0.1)) rig.restart();
    clock.pass(random.whole(0, 8_000));
  }
  return { most: most(arrivals), waited };
}

it('a cap holds for every rolling window of arrivals; what fits waits for no longer than the window', async () => {
  let highest = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const { most: found, waited } = await run(seed);
    expect({ seed, isWithinCap: found <= CAP }).toEqual({ seed, isWithinCap: true });
    expect(Math.max(...waited)).toBeLessThanOrEqual(WINDOW_MS + DOUBT_MS + 3_000);
    highest = Math.max(highest, found);
  }
  // It is used in full, too.
  expect(highest).toBeGreaterThan(CAP * 0.9);
});
