import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { nextSteps, shellQuote } from '../../src/operator/next-steps.js';
import type { PAYOUT_STATES } from '../../src/ledger/states.js';

/** What a real shell makes of a command line. */
function toWords(command: string): string[] {
  const script = `set -- ${command}; for word do printf '%s\\0' "$word"; done`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

describe('nextSteps', () => {
  it('names the commands for the payouts that wait for an operator', () => {
    const commands = (state: (typeof PAYOUT_STATES)[number]): string[] =>
      nextSteps({ payoutId: 'order:7', state }, 42).map(({ command }) => command);
    expect(commands('unknown')).toEqual([
      'payouts resolve --account 42 order:7 --sent --txhash TXHASH --reason WHY',
      'payouts resolve --account 42 order:7 --not-sent --reason WHY',
      'payouts resolve --account 42 order:7 --write-off --reason WHY',
    ]);
    expect(commands('rejected')).toEqual([
      'payouts retry --account 42 order:7 --reason WHY',
      'payouts cancel --account 42 order:7 --reason WHY',
    ]);
    expect(commands('queued')).toEqual(['payouts cancel --account 42 order:7 --reason WHY']);
    for (const state of ['sending', 'in_progress', 'completed', 'failed', 'cancelled'] as const) {
      expect(commands(state)).toEqual([]);
    }
  });

  it.each(['=ls', 'a/../b', 'a+b=c', '-x', '--sent', "it's"])('gives a shell the payoutId %s as it is', (payoutId) => {
    for (const { command } of nextSteps({ payoutId, state: 'unknown' }, 42)) {
      const words = toWords(command);
      expect(words.slice(0, 2)).toEqual(['payouts', 'resolve']);
      expect(words.filter((word) => word === payoutId).length).toBeGreaterThan(0);
      if (payoutId.startsWith('-')) expect(words.slice(-2)).toEqual(['--', payoutId]);
    }
  });
});

describe('shellQuote', () => {
  it.each(['', ' ', '$(id)', '`id`', 'a;b', 'a"b', "a'b", '*', '~', '#x', '\\', 'a\nb', '&', '!'])(
    'quotes %j',
    (word) => {
      expect(toWords(shellQuote(word))).toEqual([word]);
    },
  );
});
