import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { nextSteps, shellQuote } from '../../src/operator/next-steps.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';

const PAYMENT = { payoutId: 'order:7', paymentId: 7, amount: '12.5', addressTo: 'rPT1:4711', symbol: 'USD' };

/** What a real shell makes of a command line. */
function toWords(command: string): string[] {
  const script = `set -- ${command}; for word do printf '%s\\0' "$word"; done`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

describe('nextSteps', () => {
  it('names who has to approve a payout that a policy holds for that', () => {
    const held = { kind: 'policy', reason: 'approve', message: 'm', needs: { by: 'finance', persons: 2 } } as const;
    const [first, second] = nextSteps({ payoutId: 'p', state: 'held', held }, 4242);
    expect(first).toEqual({
      when: '2 people of the group finance must say yes to exactly this address and amount, each with a key.',
      command: 'payouts approve --account 4242 p --key FILE',
    });
    expect(second?.command).toBe('payouts reject --account 4242 p --key FILE --reason WHY');
  });

  it('names the commands for the payouts that wait for an operator', () => {
    const commands = (state: (typeof PAYOUT_STATES)[number]): (string | undefined)[] =>
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
    expect(commands('held')).toEqual([
      'payouts release --account 42 order:7 --reason WHY',
      'payouts cancel --account 42 order:7 --reason WHY',
    ]);
    expect(commands('queued')).toEqual(['payouts cancel --account 42 order:7 --reason WHY']);
  });

  it.each(PAYOUT_STATES)('says what an operator can do about a payout that is %s', (state) => {
    const steps = nextSteps({ ...PAYMENT, state, txhash: 'a7c1' }, 42);
    expect(steps.length).toBeGreaterThan(0);
    for (const { when, command } of steps) {
      expect(when).toMatch(/^[A-Z].*\.$/);
      expect(command).toMatch(/^payouts /);
    }
  });

  it.each(['failed', 'cancelled'] as const)(
    'names the command that pays one that is %s under a new payoutId',
    (state) => {
      const command = nextSteps({ ...PAYMENT, state, txhash: 'a7c1' }, 42).at(-1)?.command ?? '';
      expect(toWords(command)).toEqual([
        ...['payouts', 'enqueue', '--account', '42', '--payout-id', 'NEW-ID', '--payment-id', '7', '--amount', '12.5'],
        ...['--address-to', 'rPT1:4711', '--symbol', 'USD', '--reference', 'in place of order:7'],
      ]);
    },
  );

  it('never proposes to pay again what was paid too late', () => {
    for (const state of PAYOUT_STATES) {
      const steps = nextSteps({ ...PAYMENT, state, lateTxhash: 'a7c1' }, 42);
      expect(steps.length).toBeGreaterThan(0);
      expect(steps.map(({ command }) => command).join()).not.toMatch(/enqueue|retry|release|--not-sent/);
    }
  });

  it.each(['=ls', 'a/../b', 'a+b=c', '-x', '--sent', "it's"])('gives a shell the payoutId %s as it is', (payoutId) => {
    for (const { command = '' } of nextSteps({ payoutId, state: 'unknown' }, 42)) {
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
