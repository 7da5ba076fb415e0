import { payoutIdField } from '../base/fields.js';

/**
 * The states of a payout: the source of every list of states in code, Lua scripts and docs. The ways between them are
 * in {@link TRANSITIONS}.
 */

interface StateRow {
  /** One letter for it in histories. */
  readonly code: string;
  readonly meaning: string;
  /** Never left in normal operation. */
  readonly final: boolean;
  /** A payout that enters it gets a BullMQ job, through the outbox. */
  readonly needsJob: boolean;
  /** The BullMQ queue of such a payout's job. */
  readonly queue: 'withdraw' | 'transactionstatus' | null;
  /** Whose step is next; null if it is over. */
  readonly waitsFor: 'sender' | 'gateway' | 'operator' | null;
  /** No attempt was, or may have been, carried out. It may be cancelled, and is in doubt if the ledger forgot sends. */
  readonly isUnsent: boolean;
  /** The age of its oldest payout is counted, shown and exported as a metric. */
  readonly isAgeWatched: boolean;
  /** Its colour on a terminal and on the dashboard, where it is a CSS class. */
  readonly tone: Tone;
}

/** Its appearance, whatever it means. */
export type Tone = 'active' | 'good' | 'warning' | 'bad' | 'muted';

const STATES = {
  queued: {
    code: 'q',
    meaning: 'accepted, not sent',
    final: false,
    needsJob: true,
    queue: 'withdraw',
    waitsFor: 'sender',
    isUnsent: true,
    isAgeWatched: true,
    tone: 'active',
  },
  held: {
    code: 'h',
    meaning: 'not sent now: its signature, the send journal, the policy or a person holds it',
    final: false,
    needsJob: false,
    queue: null,
    waitsFor: 'operator',
    isUnsent: true,
    isAgeWatched: true,
    tone: 'warning',
  },
  sending: {
    code: 's',
    meaning: 'the one attempt is under way',
    final: false,
    needsJob: false,
    queue: 'withdraw',
    waitsFor: 'sender',
    isUnsent: false,
    isAgeWatched: true,
    tone: 'active',
  },
  in_progress: {
    code: 'p',
    meaning: 'the gateway gave a gatewayId, the payment is on its way',
    final: false,
    needsJob: true,
    queue: 'transactionstatus',
    waitsFor: 'gateway',
    isUnsent: false,
    isAgeWatched: true,
    tone: 'active',
  },
  completed: {
    code: 'c',
    meaning: 'the gateway reports it as paid; final',
    final: true,
    needsJob: false,
    queue: null,
    waitsFor: null,
    isUnsent: false,
    isAgeWatched: false,
    tone: 'good',
  },
  failed: {
    code: 'f',
    meaning: 'the gateway reports that the payment failed; final',
    final: true,
    needsJob: false,
    queue: null,
    waitsFor: null,
    isUnsent: false,
    isAgeWatched: false,
    tone: 'bad',
  },
  rejected: {
    code: 'r',
    meaning: 'the gateway reported that the call failed; nothing was paid',
    final: false,
    needsJob: false,
    queue: null,
    waitsFor: 'operator',
    isUnsent: true,
    isAgeWatched: false,
    tone: 'warning',
  },
  unknown: {
    code: 'u',
    meaning: 'sent, or possibly sent, and no trustworthy response: an operator must check',
    final: false,
    needsJob: false,
    queue: null,
    waitsFor: 'operator',
    isUnsent: false,
    isAgeWatched: true,
    tone: 'warning',
  },
  cancelled: {
    code: 'x',
    meaning: 'never sent, or given up after a rejection: nothing was paid; final',
    final: true,
    needsJob: false,
    queue: null,
    waitsFor: null,
    isUnsent: false,
    isAgeWatched: false,
    tone: 'muted',
  },
  written_off: {
    code: 'w',
    meaning: 'settled by a person outside the queue; paid or not: ask, do not book by it; final',
    final: true,
    needsJob: false,
    queue: null,
    waitsFor: null,
    isUnsent: false,
    isAgeWatched: false,
    tone: 'muted',
  },
} as const satisfies Record<string, StateRow>;

/** The state of a payout; {@link STATE_MEANING} says what each means. */
export type PayoutState = keyof typeof STATES;

/** Every state. */
export const PAYOUT_STATES = Object.keys(STATES) as readonly PayoutState[];

type StatesWith<Column extends keyof StateRow, Value> = {
  [State in PayoutState]: (typeof STATES)[State][Column] extends Value ? State : never;
}[PayoutState];

function statesWith<Column extends keyof StateRow, Value extends StateRow[Column]>(
  column: Column,
  value: Value,
): readonly StatesWith<Column, Value>[] {
  return PAYOUT_STATES.filter((state) => stateRow(state)[column] === value) as StatesWith<Column, Value>[];
}

function stateRow(state: PayoutState): StateRow {
  return STATES[state];
}

/** What each state means, in words for operators. */
export const STATE_MEANING = mapStates((state) => STATES[state].meaning) as Readonly<Record<PayoutState, string>>;

/** Final states are never left, except that an adopted ledger may have to admit that it forgot a send. */
export const FINAL_STATES: readonly PayoutState[] = statesWith('final', true);

/**
 * The queue does nothing more with the payout. Only a proof corrects it: an adoption (it becomes `unknown` or
 * `in_progress`), or a late payment.
 */
export function isFinal(state: PayoutState): boolean {
  return STATES[state].final;
}

/**
 * Ended by a person or the application, without the gateway. A send journal keeps it: a Redis that forgot it would send
 * the payout.
 */
export const KEPT_STATES = ['cancelled', 'written_off'] as const satisfies readonly PayoutState[];
export type KeptState = (typeof KEPT_STATES)[number];

export const STATES_WITH_JOB = statesWith('needsJob', true);
export type StateWithJob = StatesWith<'needsJob', true>;

/** No payout should stay long in these states. */
export const WATCHED_STATES = statesWith('isAgeWatched', true);
/** A state in which no payout should stay long. */
export type WatchedState = StatesWith<'isAgeWatched', true>;

/** The states in which nothing was paid, and nothing is on its way. */
export const UNSENT_STATES: readonly PayoutState[] = statesWith('isUnsent', true);

/** A person may hold what the worker could send by itself, or once a rule lets it pass. */
export const HOLDABLE_STATES: readonly PayoutState[] = ['queued', 'held'];

export const OPERATOR_STATES: readonly PayoutState[] = statesWith('waitsFor', 'operator');

/** States that a payout does not leave without an operator. */
export const SETTLED_STATES: readonly PayoutState[] = [...FINAL_STATES, ...OPERATOR_STATES];

/**
 * The states that an operator sees in full first: those that wait for a decision or ended badly; the most urgent first.
 */
export const URGENT_STATES: readonly PayoutState[] = PAYOUT_STATES.filter(
  (state) => STATES[state].waitsFor === 'operator' || STATES[state].tone === 'bad',
).toReversed();

export function waitsFor(state: PayoutState): 'sender' | 'gateway' | 'operator' | null {
  return STATES[state].waitsFor;
}

export const STATE_TONE = mapStates((state) => STATES[state].tone) as Readonly<Record<PayoutState, Tone>>;

export function queueNameOf(state: StateWithJob): (typeof STATES)[StateWithJob]['queue'] {
  return STATES[state].queue;
}

/** The states whose job is in the same queue as that of `state`: while a payout is sent, its job still runs. */
export function statesInQueueOf(state: StateWithJob): readonly PayoutState[] {
  return PAYOUT_STATES.filter((other) => STATES[other].queue === STATES[state].queue);
}

export const STATE_CODE = mapStates((state) => STATES[state].code) as Readonly<Record<PayoutState, string>>;

const STATE_OF_CODE = new Map(PAYOUT_STATES.map((state) => [STATE_CODE[state], state]));

/** Undefined if it is not a code. */
export function stateOfCode(code: string): PayoutState | undefined {
  return STATE_OF_CODE.get(code);
}

function mapStates<Value>(toValue: (state: PayoutState) => Value): Record<string, Value> {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, toValue(state)]));
}

export function isPayoutState(text: string): text is PayoutState {
  return (PAYOUT_STATES as readonly string[]).includes(text);
}

/** Every way from one state to another. A script cannot make a transition that is not in this table. */

interface Transition {
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** Who makes the change, and why. */
  readonly when: string;
  /** Only after something was forgotten or mistaken, by the gateway too: it is never offered as the next step. */
  readonly isExceptional?: true;
}

const FORGOTTEN = 'an operator adopts a ledger that forgot a send which the journal knows';

const ENDED_BEFORE =
  'an operator writes it off, it is cancelled after a late payment of it was proved or while held as `sent_before` or `ended_before`, or an adoption puts back that it was written off';

export const TRANSITIONS: readonly Transition[] = [
  { from: 'queued', to: 'sending', when: 'the sender begins the one attempt' },
  { from: 'queued', to: 'cancelled', when: 'the application or an operator cancels it' },
  {
    from: 'queued',
    to: 'held',
    when: 'the worker finds that it may not be sent: signature, journal or policy; or a person holds or rejects it',
  },
  {
    from: 'held',
    to: 'queued',
    when: 'the policy lets it pass, an operator releases it after the cause is gone, or it is enqueued again with a new signature',
  },
  { from: 'held', to: 'cancelled', when: 'the application or an operator cancels it' },
  { from: 'sending', to: 'in_progress', when: 'the gateway accepted it and gave a gatewayId' },
  { from: 'sending', to: 'rejected', when: 'the gateway reported that the call failed' },
  { from: 'sending', to: 'unknown', when: 'no trustworthy response came, or the sender ended before it' },
  { from: 'sending', to: 'queued', when: 'it is proved that nothing was sent' },
  { from: 'in_progress', to: 'completed', when: 'the gateway reports it as paid' },
  { from: 'in_progress', to: 'failed', when: 'the gateway reports that the payment failed' },
  {
    from: 'in_progress',
    to: 'unknown',
    when: "the gateway's status is about another payment, or another payout gets the same gatewayId",
    isExceptional: true,
  },
  { from: 'rejected', to: 'queued', when: 'an operator retries it' },
  { from: 'rejected', to: 'cancelled', when: 'the application or an operator cancels it' },
  {
    from: 'unknown',
    to: 'in_progress',
    when: "an operator gives the gatewayId, or the attempt's own late response does, or the worker finds the payment at the gateway by its order id",
  },
  { from: 'unknown', to: 'rejected', when: "the attempt's own late response says that the call failed" },
  { from: 'unknown', to: 'queued', when: 'an operator states that it was not sent' },
  { from: 'unknown', to: 'written_off', when: 'an operator writes it off' },
  {
    from: 'queued',
    to: 'in_progress',
    when: 'the late acceptance of an attempt that an operator took for not sent, also one that the worker finds by its order id, or one that an adoption brings back',
    isExceptional: true,
  },
  { from: 'queued', to: 'unknown', when: `${FORGOTTEN}, or gives up sends that nobody knows`, isExceptional: true },
  { from: 'queued', to: 'rejected', when: `${FORGOTTEN}, and that it was rejected`, isExceptional: true },
  {
    from: 'held',
    to: 'in_progress',
    when: 'the late acceptance of an attempt that an operator took for not sent, also one that the worker finds by its order id, or one that an adoption brings back',
    isExceptional: true,
  },
  { from: 'held', to: 'unknown', when: `${FORGOTTEN}, or gives up sends that nobody knows`, isExceptional: true },
  { from: 'held', to: 'rejected', when: `${FORGOTTEN}, and that it was rejected`, isExceptional: true },
  { from: 'rejected', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'rejected', to: 'in_progress', when: `${FORGOTTEN}, with its gatewayId`, isExceptional: true },
  { from: 'queued', to: 'written_off', when: ENDED_BEFORE, isExceptional: true },
  { from: 'held', to: 'written_off', when: ENDED_BEFORE, isExceptional: true },
  { from: 'rejected', to: 'written_off', when: ENDED_BEFORE, isExceptional: true },
  { from: 'cancelled', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'cancelled', to: 'in_progress', when: `${FORGOTTEN}, with its gatewayId`, isExceptional: true },
  { from: 'written_off', to: 'unknown', when: FORGOTTEN, isExceptional: true },
  { from: 'written_off', to: 'in_progress', when: `${FORGOTTEN}, with its gatewayId`, isExceptional: true },
];

/**
 * States that no payout ever leaves, not even by an adoption. Their indexes only grow, until retention removes old
 * payouts.
 */
export const ENDED_STATES: readonly PayoutState[] = PAYOUT_STATES.filter((state) =>
  TRANSITIONS.every(({ from }) => from !== state),
);

/** In normal operation. */
export function reachableFrom(state: PayoutState): readonly PayoutState[] {
  return TRANSITIONS.filter(({ from, isExceptional }) => from === state && !isExceptional).map(({ to }) => to);
}

/** A payout that waits for a job, or an unknown member, perhaps of a newer version. */
export type OutboxEntry =
  { readonly state: StateWithJob; readonly payoutId: string } | { readonly unknownMember: string };

/**
 * `<state> <payoutId>`. An impossible payoutId makes the member unknown: bytes that are not UTF-8 decode to the text of
 * another member, which can never be removed.
 */
export function parseOutboxMember(member: string): OutboxEntry {
  const [name, payoutId, ...rest] = member.split(' ');
  const state = STATES_WITH_JOB.find((each) => each === name);
  return state === undefined || rest.length > 0 || !payoutIdField.safeParse(payoutId).success
    ? { unknownMember: member }
    : { state, payoutId: payoutId as string };
}
