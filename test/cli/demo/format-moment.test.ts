import { describe, expect, it } from '@jest/globals';
import picocolors from 'picocolors';
import { type DemoMoment, formatMoment } from '../../../src/cli/demo/demo-view.js';
import type { BoardRow } from '../../../src/cli/demo/payout-board.js';
import type { PayoutState } from '../../../src/ledger/states.js';

const colours = picocolors.createColors(false);

function aMoment(states: readonly PayoutState[]): DemoMoment {
  const rows = states.map((state, index): BoardRow => ({
    payoutId: `p-${index}`,
    amount: '12.5',
    addressTo: 'TXYZ9',
    state,
    gapMs: null,
  }));
  return { rows, elapsedMs: 5_000, smallestGapMs: 1_021.9, meanGapMs: 1_200, workerPid: 7 };
}

describe('formatMoment', () => {
  it('shows each payout, the count of each state, and the gaps rounded down', () => {
    const lines = formatMoment(aMoment(['completed', 'sending', 'queued']), 40, colours);
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}p-0 +12\.5 {2}TXYZ9 +✔ completed/));
    expect(lines).toContainEqual(expect.stringContaining('1 queued, 1 sending, 1 completed'));
    expect(lines.at(-1)).toBe('  5 s  worker 7  smallest gap at the gateway 1021 ms, mean 1200 ms');
  });

  it.each([0, 50, 99, 100])('fits the terminal and shows the next payout, after %i of 100', (done) => {
    const states = Array.from({ length: 100 }, (_, index): PayoutState => (index < done ? 'completed' : 'queued'));
    const lines = formatMoment(aMoment(states), 24, colours);
    expect(lines.length).toBeLessThan(24);
    expect(lines.join('\n')).toMatch(new RegExp(`^ {2}p-${Math.min(done, 99)} `, 'm'));
    expect(lines.join('\n')).toContain('… 100 payouts in total');
  });
});
