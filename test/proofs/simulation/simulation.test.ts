import { describe, expect, it } from '@jest/globals';
import { plant } from './planted/mistakes.js';
import { runSeed } from './simulation.js';
import { POLICED_SITUATIONS } from './situations.js';

const SEEDS = 40;
const FROM = 5_000_001;

describe('the simulation', () => {
  it(`keeps every promise in ${SEEDS} runs, in which payouts really are sent`, async () => {
    let arrivals = 0;
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) {
      const result = await runSeed(seed);
      expect({ seed, broken: result.broken }).toEqual({ seed, broken: undefined });
      arrivals += result.arrivals;
    }
    expect(arrivals).toBeGreaterThan(2 * SEEDS);
  });

  it('keeps the rules of a policy, which holds payouts that are sent in the end', async () => {
    const met = new Set<string>();
    for (let seed = FROM; seed < FROM + 15; seed += 1) {
      const result = await runSeed(seed, { policed: true });
      expect({ seed, broken: result.broken }).toEqual({ seed, broken: undefined });
      for (const situation of result.situations) met.add(situation);
    }
    // One seed in forty has it: `npm run simulate -- --policed` asks for it.
    const common = POLICED_SITUATIONS.filter((situation) => situation !== 'a rejection is removed from Redis');
    expect([...met]).toEqual(expect.arrayContaining(common));
  });

  it('takes the same steps for the same seed, also beside another run, and others for another seed', async () => {
    const [first, second, other] = await Promise.all([
      runSeed(FROM, { tracing: true }),
      runSeed(FROM, { tracing: true }),
      runSeed(FROM + 1, { tracing: true }),
    ]);
    expect(first.trace.length).toBeGreaterThan(20);
    expect(second).toEqual(first);
    expect(other.trace).not.toEqual(first.trace);
    expect(await runSeed(FROM)).toEqual({ ...first, trace: [] });
  });

  it.each([
    'pacing from the send instead of the response',
    'resend on timeout',
    'mark after the send',
    'recovery that requeues sending',
    'lease by expiry',
  ])('notices a planted mistake: %s', async (name) => {
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) {
      if ((await runSeed(seed, { pieces: plant(name) })).broken !== undefined) return;
    }
    throw new Error(`not noticed in ${SEEDS} runs`);
  });
});
