import type { OrderLookUp } from '../ledger/order-look-up.js';
import type { HeldFor, Payout } from '../ledger/payout.js';
import { type PayoutState, UNSENT_STATES } from '../ledger/states.js';
import { describeLookUp } from './describe-look-up.js';

/** A decision or check for an operator, with its command. No command if only waiting helps. */
export interface NextStep {
  readonly when: string;
  readonly command?: string;
}

type PayoutSituation = Pick<Payout, 'payoutId' | 'state'> &
  Partial<
    Pick<
      Payout,
      'attempt' | 'held' | 'gatewayId' | 'lateGatewayId' | 'lookUp' | 'paymentId' | 'amount' | 'addressTo' | 'symbol'
    >
  >;

export function nextSteps(
  payout: PayoutSituation,
  platformId: number,
  options: AdviceOptions = {},
): readonly NextStep[] {
  return stepsOf(payout).map((step) => toText(step, platformId, options));
}

interface Step {
  readonly when: string;
  readonly command?: Command;
}

function toText({ when, command }: Step, platformId: number, options: AdviceOptions): NextStep {
  return command === undefined ? { when } : { when, command: formatCommand(command, platformId, options) };
}

/** What ends each kind of hold, in addition to its message. */
const HELD_CAUSE: Readonly<Record<HeldFor['kind'], string>> = {
  signature: 'One that has no valid signature is held again: enqueue it again with a new one.',
  journal: 'The message names what the send journal lacks.',
  rejection: 'A rejection that stands holds it again.',
  policy: 'The message names the rule that holds it.',
  person: 'The message names the person who holds it, and why.',
};

/** A release with a statement is signed. */
const KEY_OF: Readonly<Record<string, readonly string[]>> = { sent_before: ['--key', 'FILE'] };

function approvalSteps(payoutId: string, held: HeldFor | undefined): Step[] {
  if (held?.needs === undefined) return [];
  const { by, persons } = held.needs;
  return [
    {
      when: `${persons === 1 ? '1 person' : `${persons} people`} of the group ${by} must say yes to exactly this address and amount, each with a key.`,
      command: toCommand('approve', payoutId, ['--key', 'FILE']),
    },
    {
      when: 'One of them says no: it is held until that person takes it back.',
      command: toCommand('reject', payoutId, ['--key', 'FILE', '--reason', 'WHY']),
    },
  ];
}

/** The policy need not change. */
export function isRejectedByPerson({ held }: Pick<PayoutSituation, 'held'>): boolean {
  return held?.kind === 'rejection';
}

function rejectionSteps(payoutId: string): Step[] {
  const when = 'The person who rejected it takes that back, with a key: it is checked again.';
  return [{ when, command: toCommand('unreject', payoutId, ['--key', 'FILE', '--reason', 'WHY']) }];
}

function stepsOf(payout: PayoutSituation): readonly Step[] {
  const { payoutId, state, attempt = 'N', held, gatewayId, lateGatewayId } = payout;
  const lookUp = lookUpOf(payout);
  if (lateGatewayId !== undefined) return nextStepsOncePaid({ payoutId, state }, lateGatewayId);
  switch (state) {
    case 'unknown':
      return [
        ...(lookUp !== undefined && isKnownToGateway(lookUp)
          ? [{ when: `The worker ${describeLookUp(lookUp)}.` }]
          : []),
        {
          when: 'The gateway shows the payment: say what it calls it. Its address and amount are checked first.',
          command: toCommand('resolve', payoutId, ['--sent', '--gateway-id', 'GATEWAY_ID', '--reason', 'WHY']),
        },
        ...(isKnownToGateway(lookUp)
          ? []
          : [
              {
                when: `The gateway confirms, now that its request cannot arrive any more, that it never got attempt ${attempt}: the payout is queued again and will be paid.${lookUp === undefined ? '' : ` The worker ${describeLookUp(lookUp)}.`}`,
                command: toCommand('resolve', payoutId, [
                  '--not-sent',
                  '--attempt',
                  String(attempt),
                  '--reason',
                  'WHY',
                ]),
              },
            ]),
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
      if (isRejectedByPerson(payout)) {
        return [
          {
            when: 'A person rejected it: cancel it. It is never sent. While the rejection counts, a release has it held again.',
            command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
          },
          ...rejectionSteps(payoutId),
        ];
      }
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
        {
          when: 'It should not be sent before someone has looked at it: a release queues it again.',
          command: toCommand('hold', payoutId, ['--reason', 'WHY']),
        },
      ];
    case 'sending':
      return [
        {
          when: 'Nothing: within minutes the gateway responds, or the payout becomes unknown. If it stays, no worker runs; find out why.',
          command: { name: 'doctor', args: [] },
        },
      ];
    case 'in_progress':
      return [
        {
          when: 'Nothing: the worker polls its status until it is final. See now what the gateway says; after a day, ask its support.',
          ...statusCommand(gatewayId),
        },
      ];
    case 'completed':
      return [
        {
          when: 'Nothing: it is paid. If the recipient misses it, compare address and amount with what the gateway says.',
          ...statusCommand(gatewayId),
        },
      ];
    case 'failed':
      return [
        { when: 'See what the gateway says of it now; ask its support why it failed.', ...statusCommand(gatewayId) },
        {
          when: 'The gateway confirms that nothing arrived, and it is still to be paid: enqueue it under a new payoutId. This one stays failed.',
          ...enqueueCommand(payout),
        },
      ];
    case 'cancelled':
      return [
        {
          when: 'Nothing: it is never sent. If it is still to be paid: enqueue it under a new payoutId.',
          ...enqueueCommand(payout),
        },
      ];
    case 'written_off':
      return [
        {
          when: 'Nothing: it is never sent. Whether it was paid, only who wrote it off knows: ask, and read the reason in its history, before anything is booked or paid again.',
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
  const steps: readonly (Step & { readonly state: PayoutState })[] = [
    {
      state: 'rejected',
      when: 'What the gateway complained about is fixed: all of its rejected payouts are queued again.',
      command: { name: 'retry', args: ['--batch', batch, '--reason', 'WHY'] },
    },
    {
      state: 'held',
      when: 'What holds its payouts is gone: all of them are queued again, and checked again before they are sent.',
      command: { name: 'release', args: ['--batch', batch, '--reason', 'WHY'] },
    },
    {
      state: 'queued',
      when: 'It should not be paid after all: those not sent yet are cancelled. They are counted first, and the command asks.',
      command: { name: 'cancel', args: ['--batch', batch, '--reason', 'WHY'] },
    },
    {
      state: 'unknown',
      when: 'Of each unknown one, find out whether it was paid, then decide: on its own page, or of many with `payouts resolve --file`. This lists them.',
      command: { name: 'list', args: ['--batch', batch, '--state', 'unknown', '--all', '--csv'] },
    },
  ];
  return steps.flatMap(({ state, when, command }) => {
    if (counts[state] === 0) return [];
    if (command?.name === 'list') return [toText({ when, command }, platformId, options)];
    const lines =
      command &&
      [['--dry-run'], []].map((flags) => {
        const { name, args } = command;
        return formatCommand({ name, args: [...args.slice(0, 2), ...flags, ...args.slice(2)] }, platformId, options);
      });
    return [{ when, ...(lines && { command: toBlock(lines) }) }];
  });
}

/** Commands that stop at the first one that fails, without ending the shell that they are pasted into. */
function toBlock(lines: readonly string[]): string {
  return ['(set -e', ...lines.map((line) => `  ${line}`), ')'].join('\n');
}

function statusCommand(gatewayId: string | undefined): Pick<Step, 'command'> {
  return gatewayId === undefined ? {} : { command: { name: 'gateway status', args: [gatewayId] } };
}

/** The same payment under a payoutId that the operator chooses. */
function enqueueCommand({ payoutId, paymentId, amount, addressTo, symbol }: PayoutSituation): Pick<Step, 'command'> {
  if (paymentId === undefined || amount === undefined || addressTo === undefined) return {};
  const payment = ['--payment-id', String(paymentId), '--amount', amount, '--address-to', addressTo];
  const asked = symbol === undefined ? [] : ['--symbol', symbol];
  const reference = ['--reference', `in place of ${payoutId}`];
  return { command: { name: 'enqueue', args: ['--payout-id', 'NEW-ID', ...payment, ...asked, ...reference] } };
}

/** What the worker has learned of the present attempts by asking the gateway. */
function lookUpOf({ lookUp, attempt }: PayoutSituation): OrderLookUp | undefined {
  return lookUp?.attempt === attempt ? lookUp : undefined;
}

/** It has a payment with an order id of the payout, so an attempt reached it. */
function isKnownToGateway(lookUp: OrderLookUp | undefined): boolean {
  return lookUp?.answer === 'found' || lookUp?.answer === 'other_payment';
}

/** The gateway has said that it paid, when the payout had gone on already: it is never sent again. */
function nextStepsOncePaid(
  { payoutId, state }: Pick<Payout, 'payoutId' | 'state'>,
  gatewayId: string,
): readonly Step[] {
  if (state === 'unknown') {
    return [
      {
        when: `The gateway said too late that it was paid as ${gatewayId}: follow that payment.`,
        command: toCommand('resolve', payoutId, ['--sent', '--gateway-id', gatewayId, '--reason', 'WHY']),
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
        when: `The gateway said too late that it was paid as ${gatewayId}: ask what became of that payment, and correct your books. It is never sent again.`,
        ...statusCommand(gatewayId),
      },
    ];
  }
  return [
    {
      when: `The gateway said too late that it was paid as ${gatewayId}: give up sending it. It is written off by that, and its application must be told that it was paid.`,
      command: toCommand('cancel', payoutId, ['--reason', 'WHY']),
    },
  ];
}

/** A payoutId that begins with a dash would be read as an option, so it goes to the end, behind `--`. */
function toCommand(name: string, payoutId: string, options: readonly string[]): Command {
  return { name, args: payoutId.startsWith('-') ? [...options, '--', payoutId] : [payoutId, ...options] };
}

/** A `payouts` command as an operator gives it. Words in capitals stand for the operator's own. */
export interface Command {
  /** Such as `retry` or `gateway status`. */
  readonly name: string;
  readonly args: readonly string[];
}

/** How the advice to an operator depends on where it is shown. */
export interface AdviceOptions {
  /** Whether workers have a keyring, so that an operator has to sign what sends again. */
  readonly isSigned?: boolean;
}

/** On these, workers with a keyring believe nothing that no operator signed. */
const SIGNED_COMMANDS: readonly string[] = ['retry', 'resume', 'adopt-ledger'];

/**
 * The command as text, for this account wherever the environment of its reader leads, and with the key that it needs if
 * payouts have to be signed.
 */
export function formatCommand(
  { name, args }: Command,
  platformId: number,
  { isSigned = false }: AdviceOptions = {},
): string {
  // A payoutId behind `--` may look like an option.
  const end = args.at(-2) === '--' ? args.length - 2 : args.length;
  const needsKey =
    SIGNED_COMMANDS.includes(name) || (name === 'resolve' && args.lastIndexOf('--not-sent', end - 1) > -1);
  const key = isSigned && needsKey ? ['--key', 'FILE'] : [];
  const words = args.toSpliced(args.lastIndexOf('--reason', end - 1), 0, ...key);
  return ['payouts', ...name.split(' '), '--account', String(platformId), ...words].map(shellQuote).join(' ');
}

/** A word as any POSIX shell reads it back. Words that need no quotes stay as they are, for readability. */
export function shellQuote(word: string): string {
  // `=` at the beginning of a word is a path look-up in zsh.
  if (/^[A-Za-z0-9_./:,+@%-][A-Za-z0-9_./:,+@%=-]*$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
