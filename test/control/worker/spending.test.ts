import { expect, it } from '@jest/globals';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import { Spending } from '../../../src/control/worker/spending.js';
import { Random } from '../../doubles/random.js';
import { DOUBT_MS, policyOf, TestClock } from './support.js';

const HOUR_MS = 3_600_000;
const POLICY = policyOf(
  { name: 'hour', when: { paymentId: ['6'] }, cap: { amount: '1000', within: '1h' }, over: 'wait' },
  { name: 'wallet', when: { paymentId: ['6'] }, cap: { amount: '1000', within: '2h', per: 'address' }, over: 'wait' },
);

const open = (clock: TestClock): Spending =>
  new Spending({ clock, doubtMs: DOUBT_MS }, 24 * HOUR_MS, {
    policy: POLICY,
    isListed: () => false,
    worthOf: () => ({ kind: 'unknown', reason: 'nobody asked' }),
  });

/** Three hours of sends: some rejected, some without an answer. */
function drawEvents(clock: TestClock): SpendEvent[] {
  const random = new Random(7);
  return Array.from({ length: 2_000 }).flatMap((_, number): SpendEvent[] => {
    clock.pass(random.whole(1_000, 10_000));
    const id = `p${number} 1 t`;
    const about = {
      payoutId: `p${number}`,
      attempt: 1,
      paymentId: random.pick([6, 6, 7]),
      addressTo: random.pick(['a', 'b']),
    };
    const begun = {
      kind: 'begun',
      spend: { id, ...about, amount: String(random.whole(1, 50)) },
      at: clock.wallNow(),
    } as const;
    if (random.chance(0.1)) return [begun];
    return [begun, random.chance(0.1) ? { kind: 'unpaid', id } : { kind: 'accepted', id, at: clock.wallNow() }];
  });
}

it('what was spent comes to the same, read at once or bit by bit', () => {
  const clock = new TestClock();
  const events = drawEvents(clock);
  const [atOnce, bitByBit] = [open(clock), open(clock)];
  atOnce.take(events, 'by wall clock');
  for (let from = 0; from < events.length; from += 200) bitByBit.take(events.slice(from, from + 200), 'by wall clock');
  for (let passed = 0; passed < 3 * HOUR_MS; passed += 60_000) {
    for (const [rule, bucket] of [
      ['hour', ''],
      ['wallet', 'a'],
      ['wallet', 'b'],
    ] as const) {
      const sums = [atOnce, bitByBit].map((spending) => spending.view(rule, bucket).sum(clock.now()));
      expect(sums[0]).toBe(sums[1]);
      if (passed === 0) expect(sums[0]).toBeGreaterThan(0n);
    }
    clock.pass(60_000);
  }
});
