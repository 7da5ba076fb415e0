import type { Payout } from '../ledger/payout.js';
import { UNSENT_STATES } from '../ledger/states.js';

/** Something that an operator may decide about a payout, and the command that does it. */
export interface NextStep {
  readonly when: string;
  readonly command: string;
}

/** What an operator can do about a payout in its present state; nothing, where only waiting helps or it is over. */
export function nextSteps(
  payout: Pick<Payout, 'payoutId' | 'state' | 'lateTxhash'>,
  platformId: number,
): readonly NextStep[] {
  return stepsOf(payout).map((step) => ({ ...step, command: forAccount(step.command, platformId) }));
}

/** A `payouts` command for this account, wherever the environment of its reader leads. */
export function forAccount(command: string, platformId: number): string {
  return command.replace(/^payouts \S+/, `$& --account ${platformId}`);
}

function stepsOf({
  payoutId,
  state,
  lateTxhash,
}: Pick<Payout, 'payoutId' | 'state' | 'lateTxhash'>): readonly NextStep[] {
  if (lateTxhash !== undefined) return nextStepsOncePaid({ payoutId, state }, lateTxhash);
  switch (state) {
    case 'unknown':
      return [
        {
          when: 'The gateway shows the payment: give its txhash. Its address and amount are checked first.',
          command: toCommand('resolve', payoutId, ['--sent', '--txhash', 'TXHASH', '--reason', 'WHY']),
        },
        {
          when: 'The gateway confirms that it never got it: the payout is queued again and will be paid.',
          command: toCommand('resolve', payoutId, ['--not-sent', '--reason', 'WHY']),
        },
        {
          when: 'It is settled in another way: write it off. It is never sent again.',
          command: toCommand('resolve', payoutId, ['--write-off', '--reason', 'WHY']),
        },
      ];
    case 'rejected':
      return [
        {
          when: 'What the gateway complained about is fixed: the payout is queued again.',
          command: toCommand('retry', payoutId, ['--reason', 'WHY']),
        },
        {
          when: 'It cannot or should not be paid: give it up. It is never sent again.',
          command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
        },
      ];
    case 'queued':
      return [
        { when: 'It should not be paid after all.', command: toCommand('cancel', payoutId, ['--reason', 'WHY']) },
      ];
    case 'sending':
    case 'in_progress':
    case 'completed':
    case 'failed':
    case 'cancelled':
      return [];
  }
}

/** The gateway has said that it paid, when the payout had gone on already: it is never sent again. */
function nextStepsOncePaid(
  { payoutId, state }: Pick<Payout, 'payoutId' | 'state'>,
  txhash: string,
): readonly NextStep[] {
  if (state === 'unknown') {
    return [
      {
        when: `The gateway said too late that it was paid as ${txhash}: follow that transaction.`,
        command: toCommand('resolve', payoutId, ['--sent', '--txhash', txhash, '--reason', 'WHY']),
      },
      {
        when: 'It is settled in another way: write it off. It is never sent again.',
        command: toCommand('resolve', payoutId, ['--write-off', '--reason', 'WHY']),
      },
    ];
  }
  if (!UNSENT_STATES.includes(state)) return [];
  return [
    {
      when: `The gateway said too late that it was paid as ${txhash}: give up sending it.`,
      command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
    },
  ];
}

/** A payoutId that begins with a dash would be read as an option, so it goes to the end, behind `--`. */
function toCommand(verb: string, payoutId: string, options: readonly string[]): string {
  const words = payoutId.startsWith('-') ? [...options, '--', payoutId] : [payoutId, ...options];
  return ['payouts', verb, ...words].map(shellQuote).join(' ');
}

/** A word as any POSIX shell reads it back. Words that need no quotes stay as they are, for readability. */
export function shellQuote(word: string): string {
  // `=` at the beginning of a word is a path look-up in zsh.
  if (/^[A-Za-z0-9_./:,+@%-][A-Za-z0-9_./:,+@%=-]*$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
