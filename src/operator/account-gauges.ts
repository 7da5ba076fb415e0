import { Gauge, type Registry } from 'prom-client';
import { systemClock, within } from '../base/clock.js';
import { RedisUnavailableError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { AccountStats } from '../ledger/reads/account-stats.js';
import type { PolicyReport } from '../ledger/reads/policy-report.js';
import type { UnexplainedDrop } from '../ledger/reads/reconciliation.js';
import { PAYOUT_STATES, WATCHED_STATES } from '../ledger/states.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import { type UnservedAccount, UnservedAccounts } from './unserved-accounts.js';
import { type AccountDetails, type AccountMoney, readAccountDetails } from './account-details.js';

/** The name, the help and the labels besides `platform_id` of each. */
const GAUGES = {
  heartbeatAge: [
    'payouts_sender_heartbeat_age_seconds',
    "Since this process saw the heartbeat of the account's sender rise, or since its own start.",
  ],
  due: ['payouts_due', 'Queued payouts that could be sent now: those whose `notBefore` is in the future are left out.'],
  pollsDue: [
    'payouts_polls_due',
    'Status polls that are due and wait for their turn: if it stays above 60 times STATUS_POLL_RATE, that is too small.',
  ],
  notificationLag: [
    'payouts_notification_lag_seconds',
    'For how long the oldest event waits that `payouts notify` has not handled; absent if it was never started.',
  ],
  outboxUnreadable: [
    'payouts_outbox_unreadable',
    'Members of the outbox that this version does not understand, as a newer one may have written them.',
  ],
  unreadable: [
    'payouts_unreadable_keys',
    'Keys of the account in Redis that cannot be read, because someone has altered them.',
  ],
  inState: ['payouts_in_state', 'Payouts of the account in each state.', 'state'],
  oldestAge: [
    'payouts_oldest_age_seconds',
    'For how long the payout that is longest in the state has been there; 0 when there is none.',
    'state',
  ],
  lookUpWorks: [
    'payouts_look_up_works',
    '1 if the gateway has been seen to find a payment by its order id, so that the worker settles most unknown payouts by itself, else 0.',
  ],
  stuck: [
    'payouts_stuck_in_progress',
    'Payouts that the gateway has neither completed nor failed within STUCK_AFTER_MS.',
  ],
  paused: ['payouts_paused', '1 while the account is paused: nothing is sent until an operator resumes it.'],
  adopted: ['payouts_adopted', '1 from an adoption of the ledger until an operator has resumed the account, else 0.'],
  objections: ['payouts_objections', 'Send journals that contradict the ledger: while there is one, nothing is sent.'],
  latePayments: [
    'payouts_late_payments',
    'Payouts of which a payment was proved after they were written off or put back: each may have been paid twice.',
  ],
  balance: [
    'payouts_balance',
    'The balance as the gateway stated it last; absent if a living sender has not read it for 15 minutes.',
    'currency',
  ],
  balanceNeeded: [
    'payouts_balance_needed',
    'What is queued and has to be paid from the balance of the same labels, in the same unit.',
    'currency',
  ],
  balanceAge: ['payouts_balance_age_seconds', 'Since the gateway stated the balance last.'],
  unexplained: [
    'payouts_balance_unexplained',
    'What the balance lost without a payout that explains it, until an operator accepts it; 0 while it adds up.',
    'currency',
  ],
  queuedAmount: ['payouts_queued_amount', 'The sum of the queued payouts of a currency.', 'payment_id', 'currency'],
  held: [
    'payouts_held',
    'Held payouts by rule and verdict of the policy (refuse, approve, wait), or by `signature` or `journal`.',
    'rule',
    'kind',
  ],
  heldOverdue: [
    'payouts_held_overdue_seconds',
    'Since the first payout that the rule holds should have been released by it, or since it is held if no time is known.',
    'rule',
    'kind',
  ],
  policyUsage: [
    'payouts_policy_usage_ratio',
    'How much of a window of the policy is used, 0 to 1; of the fullest address or signer if each has its own.',
    'rule',
  ],
  rateAge: [
    'payouts_rate_age_seconds',
    'Since the oldest rate in dollars that counts was fetched, or asked for without a response; absent if no rule asks for dollars.',
  ],
} as const satisfies Readonly<Record<string, readonly [name: string, help: string, ...labels: string[]]>>;

type LedgerGauges = Readonly<Record<keyof typeof GAUGES, Gauge>>;

interface ReadAccount {
  readonly platformId: number;
  readonly details: AccountDetails;
}

/**
 * Gauges of what Redis has about accounts. The worker, the dashboard and `payouts notify` export the same, so that no
 * alert resolves because the worker died.
 * @param collect - called at each scrape; by default the caller sets them before
 * @returns what sets them. Series of accounts that are not given end, because old numbers would look true. `unserved` are
 * accounts of others
 */
export function createLedgerGauges(
  registry: Registry,
  collect?: () => Promise<void>,
): (accounts: readonly ReadAccount[], redisIsUp: boolean, unserved: readonly UnservedAccount[]) => void {
  const open = (name: string, help: string, ...labelNames: readonly string[]): Gauge =>
    (registry.getSingleMetric(name) as Gauge | undefined) ??
    new Gauge({ name, help, labelNames, registers: [registry], ...(collect && { collect }) });
  const redisUp = open('payouts_redis_up', '1 while Redis responds to this process, else 0.');
  const gauges = Object.fromEntries(
    Object.entries(GAUGES).map(([key, [name, help, ...labels]]) => [key, open(name, help, 'platform_id', ...labels)]),
  ) as LedgerGauges;
  const unservedPayouts = open(
    'payouts_unserved',
    'Payouts that wait for a worker, of each account in this Redis that no worker process serves.',
    'platform_id',
  );
  const heartbeats = new HeartbeatAges();
  return (accounts, redisIsUp, unserved) => {
    redisUp.set(redisIsUp ? 1 : 0);
    for (const gauge of Object.values(gauges)) gauge.reset();
    for (const { platformId, details } of accounts) {
      const account = { platform_id: String(platformId) };
      gauges.heartbeatAge.set(account, heartbeats.note(platformId, details.stats.sender) / 1_000);
      setGauges(gauges, account, details);
    }
    unservedPayouts.reset();
    for (const { platformId, payouts } of unserved.slice(0, MOST_UNSERVED)) {
      unservedPayouts.set({ platform_id: String(platformId) }, payouts);
    }
  };
}

/** The metrics omit further accounts: each is a series of every exporter. */
const MOST_UNSERVED = 100;

const READ_WITHIN_MS = 3_000;

/**
 * Has a registry read the accounts at each scrape, in a process that is no worker. A registry that has the gauges of a
 * worker already gets none.
 * @param exporter - which process it is: `payouts_exporter_info` says that it is there
 * @param accounts - empty until they are open
 */
export function exportAccounts(
  registry: Registry,
  exporter: 'dashboard' | 'notify',
  accounts: () => readonly Pick<LedgerAccess, 'ledger' | 'openQueues' | 'logger'>[],
  stuckAfterMs: number,
): void {
  if (registry.getSingleMetric(GAUGES.inState[0]) !== undefined) return;
  new Gauge({
    name: 'payouts_exporter_info',
    help: 'Always 1: this process reports the accounts beside their workers.',
    labelNames: ['exporter'],
    registers: [registry],
  }).set({ exporter }, 1);
  const unserved = new UnservedAccounts(systemClock);
  const read = async (): Promise<void> => {
    const opened = accounts();
    const [found, ...views] = await Promise.all([
      findUnserved(
        unserved,
        opened.map(({ ledger }) => ledger.connection),
      ),
      ...opened.map(async (account) => readOrWarn(account, account.logger, stuckAfterMs)),
    ]);
    const known = views.flatMap(({ read }) => read ?? []);
    setGauges(
      known,
      views.every(({ isRedisUp }) => isRedisUp),
      found,
    );
  };
  let reading: Promise<void> | undefined;
  // Each gauge asks at each scrape: one read serves them all.
  const setGauges = createLedgerGauges(registry, async () => {
    reading ??= read().finally(() => (reading = undefined));
    await reading;
  });
}

/** @param connections - of the accounts of this process, which share a Redis */
export async function findUnserved(
  unserved: UnservedAccounts,
  connections: readonly LedgerConnection[],
): Promise<readonly UnservedAccount[]> {
  const [first] = connections;
  const own = connections.map(({ platformId }) => platformId);
  return first === undefined ? [] : unserved.find(first.redis, own);
}

async function readOrWarn(
  { ledger: { connection }, openQueues }: Pick<LedgerAccess, 'ledger' | 'openQueues'>,
  logger: Logger,
  stuckAfterMs: number,
): Promise<{ readonly read: ReadAccount | undefined; readonly isRedisUp: boolean }> {
  const { platformId } = connection;
  try {
    const { queues } = await openQueues();
    const details = await within(READ_WITHIN_MS, readAccountDetails(connection, queues, stuckAfterMs));
    if (details === undefined) throw new RedisUnavailableError(`Redis has not replied within ${READ_WITHIN_MS} ms`);
    return { read: { platformId, details }, isRedisUp: true };
  } catch (error) {
    logger.warn({ platformId, error: (error as Error).message }, 'metrics lack an account that cannot be read');
    return { read: undefined, isRedisUp: !(error instanceof RedisUnavailableError) };
  }
}

/** How long the sender of each account has been silent, as this process saw it: no clocks of two machines are compared. */
class HeartbeatAges {
  readonly #seen = new Map<number, { readonly beat: string; readonly at: number }>();

  /** @returns ms since the heartbeat rose */
  note(platformId: number, sender: AccountStats['sender']): number {
    const now = systemClock.now();
    const before = this.#seen.get(platformId);
    const beat = sender === null ? before?.beat : `${sender.epoch} ${sender.heartbeat}`;
    if (before !== undefined && before.beat === beat) return now - before.at;
    this.#seen.set(platformId, { beat: beat ?? '', at: now });
    return 0;
  }
}

function setGauges(gauges: LedgerGauges, account: { readonly platform_id: string }, details: AccountDetails): void {
  const { stats, due, pollsDue, stuck, lookUpWorks, notificationLagMs } = details;
  gauges.paused.set(account, stats.paused ? 1 : 0);
  gauges.adopted.set(account, stats.pauses.some(({ by }) => by === 'adoption') ? 1 : 0);
  gauges.objections.set(account, stats.objections.length);
  gauges.latePayments.set(account, stats.latePayments);
  for (const state of PAYOUT_STATES) gauges.inState.set({ ...account, state }, stats[state]);
  for (const state of WATCHED_STATES) {
    gauges.oldestAge.set({ ...account, state }, (stats.oldestAgeMs[state] ?? 0) / 1_000);
  }
  gauges.unreadable.set(account, stats.unreadable.length);
  gauges.outboxUnreadable.set(account, stats.outboxUnreadable);
  gauges.due.set(account, due);
  gauges.pollsDue.set(account, pollsDue);
  if (notificationLagMs !== undefined) gauges.notificationLag.set(account, notificationLagMs / 1_000);
  gauges.stuck.set(account, stuck);
  gauges.lookUpWorks.set(account, lookUpWorks ? 1 : 0);
  setMoneyGauges(gauges, account, details.money);
  setPolicyGauges(gauges, account, details.policyReport);
  // Without a policy, a person must resolve what is held.
  if (details.policyReport === undefined && stats.held > 0) {
    gauges.held.set({ ...account, rule: '', kind: 'signature' }, stats.held);
  }
}

/** The metrics omit further currencies: each is a series of every exporter. */
const MOST_CURRENCIES = 50;

/** Amounts lose digits here. Only alerts use them. */
function setMoneyGauges(
  gauges: LedgerGauges,
  account: { readonly platform_id: string },
  { queued, currencies, covers, balanceAgeMs, unexplained }: AccountMoney,
): void {
  if (balanceAgeMs !== undefined) gauges.balanceAge.set(account, balanceAgeMs / 1_000);
  // A gateway may list every currency it knows, most of them unused.
  const used = covers.filter((cover) => cover.queued !== '0' || cover.balance !== '0');
  for (const { currency, balance, queued: needed } of used.slice(0, MOST_CURRENCIES)) {
    gauges.balance.set({ ...account, currency }, Number(balance));
    if (needed !== undefined) gauges.balanceNeeded.set({ ...account, currency }, Number(needed));
  }
  for (const { currency, amount } of mostImportant(unexplained)) {
    gauges.unexplained.set({ ...account, currency }, Number(amount));
  }
  for (const { paymentId, amount } of queued.slice(0, MOST_CURRENCIES)) {
    const currency = currencies.find((known) => known.paymentId === paymentId)?.name ?? '';
    gauges.queuedAmount.inc({ ...account, payment_id: String(paymentId), currency }, Number(amount));
  }
}

/** Drops come first, so that no limit hides one. */
function mostImportant(unexplained: readonly UnexplainedDrop[]): readonly UnexplainedDrop[] {
  const dropped = unexplained.filter(({ amount }) => amount !== '0');
  const others = unexplained.filter(({ amount }) => amount === '0');
  return [...dropped, ...others.slice(0, MOST_CURRENCIES)];
}

function setPolicyGauges(
  gauges: LedgerGauges,
  account: { readonly platform_id: string },
  report: PolicyReport | undefined,
): void {
  if (report === undefined) return;
  const ageOf = (at: number): number => Math.max(0, systemClock.wallNow() - at) / 1_000;
  for (const { rule, reason: kind, count, since } of [...report.held, ...(report.heldWithoutRule ?? [])]) {
    gauges.held.set({ ...account, rule, kind }, count);
    if (since !== undefined) gauges.heldOverdue.set({ ...account, rule, kind }, ageOf(since));
  }
  for (const { rule, buckets } of report.rules) gauges.policyUsage.set({ ...account, rule }, buckets[0]?.ratio ?? 0);
  const ratesAt = report.ratesAt ?? report.ratesMissingSince;
  if (ratesAt !== null) gauges.rateAge.set(account, ageOf(ratesAt));
}
