/** The states of a payout and every way from one to another: the one table that code, Lua scripts and docs are made from. */

export const PAYOUT_STATES = [
  'queued',
  'sending',
  'in_progress',
  'completed',
  'failed',
  'rejected',
  'unknown',
  'cancelled',
] as const;

/** The state of a payout; {@link STATE_MEANING} says what each means. */
export type PayoutState = (typeof PAYOUT_STATES)[number];

/** What each state means, in words for people. */
export const STATE_MEANING: Readonly<Record<PayoutState, string>> = {
  queued: 'accepted, not sent',
  sending: 'the one attempt is under way',
  in_progress: 'the gateway gave a txhash, the payment is on its way',
  completed: 'the gateway says it is completed (approve 1); final',
  failed: 'the gateway says it ended in an error (approve 2); final',
  rejected: 'the gateway answered that the call failed; nothing was paid',
  unknown: 'sent, or maybe sent, and no trustworthy answer: a person must look',
  cancelled: 'never sent, given up after a rejection, or written off; final',
};

export interface Transition {
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** Who makes the change, and on what ground. */
  readonly when: string;
  /** Only where something was forgotten or mistaken before, by the gateway as well: nobody is offered it as the next step. */
  readonly isExceptional?: true;
}

const FORGOTTEN = 'a person adopts a ledger that forgot a send which the journal knows';

export const TRANSITIONS: readonly Transition[] = [
  { from: 'queued', to: 'sending', when: 'the sender begins the one attempt' },
  { from: 'queued', to: 'cancelled', when: 'the application or a person cancels it' },
  { from: 'sending', to: 'in_progress', when: 'the gateway accepted it and gave a txhash' },
  { from: 'sending', to: 'rejected', when: 'the gateway answered that the call failed' },
  { from: 'sending', to: 'unknown', when: 'no trustworthy answer came, or the sender ended before it' },
  { from: 'sending', to: 'queued', when: 'it is proved that nothing was sent' },
  { from: 'in_progress', to: 'completed', when: 'the gateway answers approve 1' },
  { from: 'in_progress', to: 'failed', when: 'the gateway answers approve 2' },
  {
    from: 'in_progress',
    to: 'unknown',
    when: "the gateway's status is about another payment, or another payout gets the same txhash",
    isExceptional: true,
  },
  { from: 'rejected', to: 'queued', when: 'a person retries it' },
  { from: 'rejected', to: 'cancelled', when: 'the application or an operator cancels it' },
  { from: 'unknown', to: 'in_progress', when: "a person gives the txhash, or the attempt's own late answer does" },
  { from: 'unknown', to: 'rejected', when: "the attempt's own late answer says that the call failed" },
  { from: 'unknown', to: 'queued', when: 'a person states that it was not sent' },
  { from: 'unknown', to: 'cancelled', when: 'a person writes it off' },
  {
    from: 'queued',
    to: 'in_progress',
    when: 'the late acceptance of an attempt that a person took for not sent, or one that an adoption brings back',
    isExceptional: true,
  },
  { from: 'queued', to: 'unknown', when: `${FORGOTTEN}, or gives up sends that nobody knows`, isExceptional: true },
  { from: 'queued', to: 'rejected', when: `${FORGOTTEN}, and that it was rejected`, isExceptional: true },
  { from: 'rejected', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'rejected', to: 'in_progress', when: `${FORGOTTEN}, with its txhash`, isExceptional: true },
  { from: 'cancelled', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'cancelled', to: 'in_progress', when: `${FORGOTTEN}, with its txhash`, isExceptional: true },
];

/** Final states are never left, except that an adopted ledger may have to admit that it forgot a send. */
export const FINAL_STATES: readonly PayoutState[] = PAYOUT_STATES.filter((state) => reachableFrom(state).length === 0);

/** The states to which a payout in `state` goes in normal operation. */
export function reachableFrom(state: PayoutState): readonly PayoutState[] {
  return TRANSITIONS.filter(({ from, isExceptional }) => from === state && !isExceptional).map(({ to }) => to);
}

export function isPayoutState(text: string): text is PayoutState {
  return (PAYOUT_STATES as readonly string[]).includes(text);
}
