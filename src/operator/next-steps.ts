import type { HeldFor } from '../ledger/payout.js';
import type { Payout } from '../ledger/payout.js';
import { withKey, type AdviceOptions } from './signed-command.js';
import { UNSENT_STATES, type PayoutState } from '../ledger/states.js';

/** A decision or check for an operator, with its command. No command if only waiting helps. */
export interface NextStep {
  readonly when: string;
  readonly command?: string;
}

export type PayoutSituation = Pick<Payout, 'payoutId' | 'state'> &
  Partial<Pick<Payout, 'held' | 'txhash' | 'lateTxhash' | 'paymentId' | 'amount' | 'addressTo' | 'symbol'>>;

export function nextSteps(
  payout: PayoutSituation,
  platformId: number,
  options: AdviceOptions = {},
): readonly NextStep[] {
  return stepsOf(payout).map((step) => stepForAccount(step, platformId, options));
}

function stepForAccount({ when, command }: NextStep, platformId: number, options: AdviceOptions): NextStep {
  return command === undefined ? { when } : { when, command: withKey(forAccount(command, platformId), options) };
}

/** A `payouts` command that names its account, whatever the reader's environment. */
export function forAccount(command: string, platformId: number): string {
  return command.replace(/^payouts (gateway )?\S+/, `$& --account ${platformId}`);
}

/** What ends each kind of hold, in addition to its message. */
const HELD_CAUSE: Readonly<Record<HeldFor['kind'], string>> = {
  signature: 'One that has no valid signature is held again: enqueue it again with a new one.',
  journal: 'The message names what the send journal lacks.',
  policy: 'The message names the rule that holds it.',
};

/** A release with a statement is signed. */
const KEY_OF: Readonly<Record<string, readonly string[]>> = { sent_before: ['--key', 'FILE'] };

function approvalSteps(payoutId: string, held: HeldFor | undefined): NextStep[] {
  if (held?.needs === undefined) return [];
  const { by, persons } = held.needs;
  return [
    {
      when: `${persons === 1 ? '1 person' : `${persons} persons`} of the group ${by} must say yes to exactly this address and amount, each with a key.`,
      command: toCommand('approve', payoutId, ['--key', 'FILE']),
    },
    {
      when: 'One of them says no: the policy does not let it pass any more.',
      command: toCommand('reject', payoutId, ['--key', 'FILE', '--reason', 'WHY']),
    },
  ];
}

function stepsOf(payout: PayoutSituation): readonly NextStep[] {
  const { payoutId, state, held, txhash, lateTxhash } = payout;
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
    case 'held':
      return [
        ...approvalSteps(payoutId, held),
        {
          when: `The cause is gone: it is queued again, and checked again before it is sent. ${HELD_CAUSE[held?.kind ?? 'signature']}`,
          command: toCommand('release', payoutId, [...(KEY_OF[held?.reason ?? ''] ?? []), '--reason', 'WHY']),
        },
        {
          when: 'It should not be paid, or nobody knows where it came from: cancel it. It is never sent.',
          command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
        },
      ];
    case 'queued':
      return [
        { when: 'It should not be paid after all.', command: toCommand('cancel', payoutId, ['--reason', 'WHY']) },
      ];
    case 'sending':
      return [
        {
          when: 'Nothing: within minutes the gateway responds, or the payout becomes unknown. If it stays, no worker runs; find out why.',
          command: 'payouts doctor',
        },
      ];
    case 'in_progress':
      return [
        {
          when: 'Nothing: the worker polls its status until it is final. See now what the gateway says; after a day, ask its support.',
          ...statusCommand(txhash),
        },
      ];
    case 'completed':
      return [
        {
          when: 'Nothing: it is paid. If the recipient misses it, compare address and amount with what the gateway says.',
          ...statusCommand(txhash),
        },
      ];
    case 'failed':
      return [
        { when: 'See what the gateway says of it now; ask its support why it failed.', ...statusCommand(txhash) },
        {
          when: 'Nothing arrived, and it is still to be paid: enqueue it under a new payoutId. This one stays failed.',
          ...enqueueCommand(payout),
        },
      ];
    case 'cancelled':
      return [
        {
          when: 'Nothing: it is never sent. If it was not settled in another way and is still to be paid: enqueue it under a new payoutId.',
          ...enqueueCommand(payout),
        },
      ];
  }
}

export function batchSteps(
  batch: string,
  counts: Readonly<Record<PayoutState, number>>,
  platformId: number,
  options: AdviceOptions = {},
): readonly NextStep[] {
  const steps: readonly (NextStep & { readonly state: PayoutState })[] = [
    {
      state: 'rejected',
      when: 'What the gateway complained about is fixed: all of its rejected payouts are queued again.',
      command: toWords('retry', '--batch', batch, '--reason', 'WHY'),
    },
    {
      state: 'held',
      when: 'What holds its payouts is gone: all of them are queued again, and checked again before they are sent.',
      command: toWords('release', '--batch', batch, '--reason', 'WHY'),
    },
    {
      state: 'queued',
      when: 'It should not be paid after all: those not sent yet are cancelled. They are counted first, and the command asks.',
      command: toWords('cancel', '--batch', batch, '--reason', 'WHY'),
    },
    {
      state: 'unknown',
      when: 'Of each unknown one, find out whether it was paid, then decide: on its own page, or of many with `payouts resolve --file`. This lists them.',
      command: toWords('list', '--batch', batch, '--state', 'unknown', '--all', '--csv'),
    },
  ];
  return steps.flatMap(({ state, ...step }) => (counts[state] > 0 ? [stepForAccount(step, platformId, options)] : []));
}

function statusCommand(txhash: string | undefined): { command?: string } {
  return txhash === undefined ? {} : { command: toWords('gateway', 'status', txhash) };
}

function enqueueCommand({ payoutId, paymentId, amount, addressTo, symbol }: PayoutSituation): { command?: string } {
  if (paymentId === undefined || amount === undefined || addressTo === undefined) return {};
  const payment = ['--payment-id', String(paymentId), '--amount', amount, '--address-to', addressTo];
  const ofAccount = symbol === undefined ? [] : ['--symbol', symbol];
  const reference = ['--reference', `in place of ${payoutId}`];
  return { command: toWords('enqueue', '--payout-id', 'NEW-ID', ...payment, ...ofAccount, ...reference) };
}

/** The gateway reported payment after the payout had moved on: it is never sent again. */
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
  if (!UNSENT_STATES.includes(state)) {
    return [
      {
        when: `The gateway said too late that it was paid as ${txhash}: ask what became of that transaction, and correct your books. It is never sent again.`,
        ...statusCommand(txhash),
      },
    ];
  }
  return [
    {
      when: `The gateway said too late that it was paid as ${txhash}: give up sending it.`,
      command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
    },
  ];
}

/** A payoutId with a leading dash would be read as an option, so it goes behind `--`. */
function toCommand(verb: string, payoutId: string, options: readonly string[]): string {
  const words = payoutId.startsWith('-') ? [...options, '--', payoutId] : [payoutId, ...options];
  return toWords(verb, ...words);
}

function toWords(...words: readonly string[]): string {
  return ['payouts', ...words].map(shellQuote).join(' ');
}

/** Quotes a word for any POSIX shell. Words that need no quotes stay readable. */
export function shellQuote(word: string): string {
  // `=` at the beginning of a word is a path look-up in zsh.
  if (/^[A-Za-z0-9_./:,+@%-][A-Za-z0-9_./:,+@%=-]*$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
