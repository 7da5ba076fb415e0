import { InvalidConfigError } from '../base/errors.js';
import { formatMoney } from '../base/format.js';
import type { Currency } from '../ledger/reads/gateway-facts.js';
import { lastMessage, type Payout } from '../ledger/payout.js';
import { PAYOUT_STATES } from '../ledger/states.js';
import { HEADLINES } from '../operator/account-headline.js';
import { ACCOUNT_EVENTS, type PayoutEvent, type PayoutEventName } from '../producer/events/payout-events.js';

/** The body of an event's post for `NOTIFY_FORMAT` `json`. */
export interface Notification {
  /** The event's `id`: the same in every attempt, also after a failover of Redis, so that a receiver handles each once. */
  readonly id: string;
  /** Its place in the stream, for an operator who must skip it. */
  readonly eventId: string;
  /** The payout's new state, or the account's event. */
  readonly type: PayoutEventName;
  /** Whether the payout's state at the event is final, see `Payout.final`. Absent if the event names no state. */
  readonly final?: boolean;
  readonly platformId: number;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by?: string;
  readonly reason?: string;
  /** Of `policy_loaded` and `journal_head`: SHA-256, hexadecimal. */
  readonly hash?: string;
  /** The payout when the notification is sent, possibly in a later state. Absent for events of the account. */
  readonly payout?: NotifiedPayout;
  readonly text: string;
  /** The page that says what to do, such as `docs/runbooks/paused.md`, or its address with `DASHBOARD_URL`. */
  readonly runbook?: string;
}

/** Without addresses and metadata, which do not belong in a chat. */
type NotifiedPayout = Pick<Payout, 'payoutId' | 'state' | 'final' | 'paymentId' | 'amount' | 'attempt'> &
  Partial<
    Pick<
      Payout,
      | 'symbol'
      | 'reference'
      | 'batch'
      | 'held'
      | 'message'
      | 'gatewayId'
      | 'txhash'
      | 'lateGatewayId'
      | 'lateTxhash'
      | 'verified'
    >
  >;

const EVENT_NAMES: readonly PayoutEventName[] = [...PAYOUT_STATES, ...ACCOUNT_EVENTS];
/** It comes every ten minutes, so receivers must ask for it by name. */
const NOT_IN_ALL: ReadonlySet<PayoutEventName> = new Set(['journal_head']);

/**
 * Reads `NOTIFY_EVENTS`.
 * @throws InvalidConfigError if a name does not exist
 */
export function parseEventNames(text: string): ReadonlySet<PayoutEventName> {
  const names = text.split(',').map((name) => name.trim());
  const isAll = names.includes('all');
  const unknown = names.filter((name) => name !== 'all' && !EVENT_NAMES.some((known) => known === name));
  if (unknown.length === 0) {
    return new Set(EVENT_NAMES.filter((name) => names.includes(name) || (isAll && !NOT_IN_ALL.has(name))));
  }
  const message = `must name events, separated by commas: all, or some of ${EVENT_NAMES.join(', ')} (got "${unknown.join(', ')}")`;
  throw new InvalidConfigError([{ field: 'NOTIFY_EVENTS', message }]);
}

export function nameOf(event: PayoutEvent): PayoutEventName | undefined {
  return event.type === 'state' ? event.to : event.type;
}

/**
 * @param payout - absent for events of the account, and after retention removed it
 * @param currencies - those with known names
 */
export function describeEvent(
  platformId: number,
  event: PayoutEvent,
  type: PayoutEventName,
  payout: Payout | undefined,
  currencies: readonly Currency[] = [],
): Notification {
  const { id, eventId, final, at, by, reason, hash } = event;
  const runbook = RUNBOOKS[type];
  return {
    id: `${platformId}:${id}`,
    eventId,
    type,
    ...(final === undefined ? {} : { final }),
    platformId,
    at,
    ...(by === undefined ? {} : { by }),
    ...(reason === undefined ? {} : { reason }),
    ...(hash === undefined ? {} : { hash }),
    ...(payout === undefined ? {} : { payout: pickFields(payout) }),
    text: describe(
      platformId,
      event,
      type,
      payout && { ...payout, money: formatMoney(payout.amount, payout.paymentId, currencies) },
    ),
    ...(runbook !== undefined && { runbook: `docs/runbooks/${runbook}.md` }),
  };
}

/** With the address of the runbook where people reach the dashboard, which serves it. */
export function linkRunbook(notification: Notification, dashboardUrl: string | undefined): Notification {
  const { runbook, text } = notification;
  if (dashboardUrl === undefined || runbook === undefined) return notification;
  const address = runbook.replace(/^docs(\/runbooks\/[\w-]+)\.md$/, `${dashboardUrl}$1`);
  return { ...notification, runbook: address, text: text.replace(` → ${runbook}`, ` → ${address}`) };
}

function pickFields(payout: Payout): NotifiedPayout {
  const { payoutId, state, final, paymentId, amount, attempt } = payout;
  const { symbol, reference, batch, held, message, gatewayId, txhash, lateGatewayId, lateTxhash, verified } = payout;
  const optional = { symbol, reference, batch, held, message, gatewayId, txhash, lateGatewayId, lateTxhash, verified };
  const known = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return { payoutId, state, final, paymentId, amount, attempt, ...known };
}

const OF_ACCOUNT: Partial<Record<PayoutEventName, string>> = {
  paused: `is ${HEADLINES.paused[0]}: nothing is sent until an operator resumes it`,
  resumed: 'was resumed',
  objection: `is ${HEADLINES.mismatch[0]}, and sends nothing`,
  ledger_adopted: 'continues: its ledger was adopted',
  declared_new: 'is new, as an operator states: its first worker begins at once',
  replicas_lowered: 'waits for fewer replicas of Redis, as an operator states',
  balance_dropped: 'has less money than its payouts explain: someone else may use its secret key',
  drop_accepted: 'had an unexplained drop of its balance, which an operator accepted',
  policy_loaded: 'has a policy that a worker loaded',
  journal_head: 'has a send journal that ends with this hash',
};

const OF_PAYOUT: Partial<Record<PayoutEventName | NonNullable<PayoutEvent['decision']>, string>> = {
  late_payment: 'was paid too late',
  tampering: 'is held, because someone has altered what is in Redis',
  other_payment: 'has an order id that the gateway has for another payment',
  approve: 'has an approval',
  reject: 'has a rejection',
};

const RUNBOOKS: Partial<Record<PayoutEventName, string>> = {
  paused: HEADLINES.paused[1],
  objection: HEADLINES.mismatch[1],
  held: HEADLINES.holds[1],
  balance_dropped: 'balance-fell',
  late_payment: 'paid-late',
  tampering: 'tampering',
  other_payment: 'other-payment',
  unknown: 'unknown',
  rejected: 'rejected',
  failed: 'failed',
};

function describe(
  platformId: number,
  { payoutId, by, reason, hash, decision }: PayoutEvent,
  type: PayoutEventName,
  payout: (Payout & { readonly money: string }) | undefined,
): string {
  const happened =
    payoutId === undefined
      ? `Account ${platformId} ${OF_ACCOUNT[type] ?? type}`
      : `Account ${platformId}: payout ${payoutId} ${OF_PAYOUT[decision ?? type] ?? `is ${type}`}`;
  const why = reason ?? (payout?.state === type ? lastMessage(payout) : undefined);
  const warning = payout?.verified === false ? 'NOT VERIFIED: no worker of the keyring signed this state' : undefined;
  const parts = [happened, payout?.money, hash, why, warning].filter((part) => part !== undefined);
  const runbook = RUNBOOKS[type];
  return [parts.join(' — '), by && ` (${by})`, runbook && ` → docs/runbooks/${runbook}.md`].join('');
}
