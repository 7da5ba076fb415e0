import { PAYOUT_STATES, type PayoutState } from './states.js';

/** Every way from one state to another. A script cannot make a transition that is not in this table. */

export interface Transition {
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** Who makes the change, and why. */
  readonly when: string;
  /** Only after something was forgotten or mistaken, by the gateway too: it is never offered as the next step. */
  readonly isExceptional?: true;
}

const FORGOTTEN = 'an operator adopts a ledger that forgot a send which the journal knows';

export const TRANSITIONS: readonly Transition[] = [
  { from: 'queued', to: 'sending', when: 'the sender begins the one attempt' },
  { from: 'queued', to: 'cancelled', when: 'the application or an operator cancels it' },
  {
    from: 'queued',
    to: 'held',
    when: 'the worker finds that it may not be sent: signature, journal or policy',
  },
  {
    from: 'held',
    to: 'queued',
    when: 'the policy lets it pass, an operator releases it after the cause is gone, or it is enqueued again with a new signature',
  },
  { from: 'held', to: 'cancelled', when: 'the application or an operator cancels it' },
  { from: 'sending', to: 'in_progress', when: 'the gateway accepted it and gave a txhash' },
  { from: 'sending', to: 'rejected', when: 'the gateway reported that the call failed' },
  { from: 'sending', to: 'unknown', when: 'no trustworthy response came, or the sender ended before it' },
  { from: 'sending', to: 'queued', when: 'it is proved that nothing was sent' },
  { from: 'in_progress', to: 'completed', when: 'the gateway reports it as paid' },
  { from: 'in_progress', to: 'failed', when: 'the gateway reports that the payment failed' },
  {
    from: 'in_progress',
    to: 'unknown',
    when: "the gateway's status is about another payment, or another payout gets the same txhash",
    isExceptional: true,
  },
  { from: 'rejected', to: 'queued', when: 'an operator retries it' },
  { from: 'rejected', to: 'cancelled', when: 'the application or an operator cancels it' },
  { from: 'unknown', to: 'in_progress', when: "an operator gives the txhash, or the attempt's own late response does" },
  { from: 'unknown', to: 'rejected', when: "the attempt's own late response says that the call failed" },
  { from: 'unknown', to: 'queued', when: 'an operator states that it was not sent' },
  { from: 'unknown', to: 'cancelled', when: 'an operator writes it off' },
  {
    from: 'queued',
    to: 'in_progress',
    when: 'the late acceptance of an attempt that an operator took for not sent, or one that an adoption brings back',
    isExceptional: true,
  },
  { from: 'queued', to: 'unknown', when: `${FORGOTTEN}, or gives up sends that nobody knows`, isExceptional: true },
  { from: 'queued', to: 'rejected', when: `${FORGOTTEN}, and that it was rejected`, isExceptional: true },
  {
    from: 'held',
    to: 'in_progress',
    when: 'the late acceptance of an attempt that an operator took for not sent, or one that an adoption brings back',
    isExceptional: true,
  },
  { from: 'held', to: 'unknown', when: `${FORGOTTEN}, or gives up sends that nobody knows`, isExceptional: true },
  { from: 'held', to: 'rejected', when: `${FORGOTTEN}, and that it was rejected`, isExceptional: true },
  { from: 'rejected', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'rejected', to: 'in_progress', when: `${FORGOTTEN}, with its txhash`, isExceptional: true },
  { from: 'cancelled', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'cancelled', to: 'in_progress', when: `${FORGOTTEN}, with its txhash`, isExceptional: true },
];

/**
 * States that no payout ever leaves, not even by an adoption. Since ledger format 4 their indexes only grow, until
 * retention removes old payouts.
 */
export const ENDED_STATES: readonly PayoutState[] = PAYOUT_STATES.filter((state) =>
  TRANSITIONS.every(({ from }) => from !== state),
);

/** In normal operation. */
export function reachableFrom(state: PayoutState): readonly PayoutState[] {
  return TRANSITIONS.filter(({ from, isExceptional }) => from === state && !isExceptional).map(({ to }) => to);
}
