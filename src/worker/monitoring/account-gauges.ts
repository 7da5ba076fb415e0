import { Gauge, type Registry } from 'prom-client';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import type { UnexplainedDrop } from '../../ledger/reads/reconciliation.js';
import { PAYOUT_STATES, WATCHED_STATES } from '../../ledger/states.js';
import type { KeyringFacts } from '../account-control.js';
import { type AccountMoney, type AccountView, viewAccount, type MonitoredAccount } from './account-snapshot.js';

/**
 * @returns what updates the gauges before a read. Values from Redis are left out while it is unavailable, and if
 * another process works for the account: old numbers would look true.
 */
export function createAccountGauges(
  registry: Registry,
  stuckAfterMs: number,
): (accounts: readonly MonitoredAccount[]) => Promise<void> {
  const gauges = createGauges(registry);
  const setKeyGauges = createKeyGauges(registry);
  return async (accounts) => {
    const views = await Promise.all(accounts.map(async (account) => viewAccount(account, stuckAfterMs)));
    // No await from here on: a concurrent reader must not see half of it.
    for (const gauge of Object.values(gauges)) gauge.reset();
    setKeyGauges(accounts[0]?.keyring);
    gauges.mayForget.set(accounts.some(({ redis }) => redis.mayForget) ? 1 : 0);
    gauges.replicasMissing.set(Math.max(0, ...accounts.map(({ redis }) => redis.missingReplicas)));
    gauges.redisUp.set(views.length > 0 && views.every(({ redisIsUp }) => redisIsUp) ? 1 : 0);
    gauges.refusesWrites.set(views.some(({ writeRefusal }) => writeRefusal !== undefined) ? 1 : 0);
    for (const { clockOffsetMs } of views) {
      if (clockOffsetMs !== undefined) gauges.clockOffset.set(clockOffsetMs / 1_000);
    }
    for (const view of views) setGauges(gauges, view);
  };
}

type Gauges = ReturnType<typeof createGauges>;

function setGauges(gauges: Gauges, view: AccountView): void {
  const { platformId, status, details } = view;
  const account = { platform_id: String(platformId) };
  const epoch = 'epoch' in status ? status.epoch : 0;
  gauges.leaseHeld.set(account, epoch > 0 ? 1 : 0);
  gauges.leaseEpoch.set(account, epoch);
  gauges.refused.set(account, status.role === 'refused' && !('cause' in status) ? 1 : 0);
  setPolicyGauges(gauges, view, details?.policyReport, Date.now());
  setJournalGauges(gauges, view);
  gauges.archiveFailed.set(account, view.work.archiveTrouble === undefined ? 0 : 1);
  if (details === undefined) return;
  setMoneyGauges(gauges, account.platform_id, details.money);
  const { stats, due, pollsDue, stuck, notificationLagMs } = details;
  gauges.paused.set(account, stats.paused ? 1 : 0);
  gauges.objections.set(account, stats.objections.length);
  gauges.latePayments.set(account, stats.latePayments);
  for (const state of PAYOUT_STATES) gauges.inState.set({ ...account, state }, stats[state]);
  for (const state of WATCHED_STATES) {
    gauges.oldestAge.set({ ...account, state }, (stats.oldestAgeMs[state] ?? 0) / 1_000);
  }
  gauges.outboxUnreadable.set(account, stats.outboxUnreadable);
  gauges.due.set(account, due);
  gauges.pollsDue.set(account, pollsDue);
  if (notificationLagMs !== undefined) gauges.notificationLag.set(account, notificationLagMs / 1_000);
  gauges.stuck.set(account, stuck);
}

function createGauges(registry: Registry) {
  const registers = [registry];
  const ofAccount = (name: string, help: string): Gauge<'platform_id'> =>
    new Gauge({ name, help, labelNames: ['platform_id'], registers });
  const ofState = (name: string, help: string): Gauge<'platform_id' | 'state'> =>
    new Gauge({ name, help, labelNames: ['platform_id', 'state'], registers });
  return {
    ...createMoneyGauges(registry),
    ...createPolicyGauges(registry),
    ...createJournalGauges(registry),
    redisUp: new Gauge({
      name: 'payouts_redis_up',
      help: '1 while Redis responds to this process, else 0.',
      registers,
    }),
    mayForget: new Gauge({
      name: 'payouts_redis_may_forget',
      help: '1 while this process sends nothing because of settings with which Redis may forget what was sent, else 0.',
      registers,
    }),
    replicasMissing: new Gauge({
      name: 'payouts_replicas_missing',
      help: 'Replicas of Redis that do not acknowledge writes although each send needs them: nothing is sent meanwhile.',
      registers,
    }),
    refusesWrites: new Gauge({
      name: 'payouts_redis_refuses_writes',
      help: '1 while Redis refuses writes (a read-only replica, full, or its disk fails) and so nothing is sent, else 0.',
      registers,
    }),
    clockOffset: new Gauge({
      name: 'payouts_clock_offset_seconds',
      help: 'How far the wall clock of this machine is ahead of that of Redis.',
      registers,
    }),
    due: ofAccount(
      'payouts_due',
      'Queued payouts that could be sent now: those whose `notBefore` is in the future are left out.',
    ),
    pollsDue: ofAccount(
      'payouts_polls_due',
      'Status polls that are due and wait for their turn: where it stays above 60 times STATUS_POLL_RATE, that is too small.',
    ),
    notificationLag: ofAccount(
      'payouts_notification_lag_seconds',
      'For how long the oldest event waits that `payouts notify` has not handled; absent where it was never started.',
    ),
    outboxUnreadable: ofAccount(
      'payouts_outbox_unreadable',
      'Members of the outbox that this version does not understand, as a newer one may have written them.',
    ),
    inState: ofState('payouts_in_state', 'Payouts of the account in each state.'),
    oldestAge: ofState(
      'payouts_oldest_age_seconds',
      'For how long the payout that is longest in the state has been there; 0 when there is none.',
    ),
    stuck: ofAccount(
      'payouts_stuck_in_progress',
      'Payouts that the gateway has neither completed nor failed within STUCK_AFTER_MS.',
    ),
    archiveFailed: ofAccount(
      'payouts_archive_failed',
      '1 while old payouts stay in Redis because the archive cannot be written (PAYOUT_ARCHIVE_DIR), else 0.',
    ),
    paused: ofAccount('payouts_paused', '1 while the account is paused: nothing is sent until an operator resumes it.'),
    objections: ofAccount(
      'payouts_objections',
      'Send journals that contradict the ledger: while there is one, nothing is sent.',
    ),
    latePayments: ofAccount(
      'payouts_late_payments',
      'Payouts of which a payment was proved after they were written off or put back: each may have been paid twice.',
    ),
    leaseHeld: ofAccount('payouts_lease_held', '1 in the one process that sends for the account, else 0.'),
    leaseEpoch: ofAccount('payouts_lease_epoch', 'The epoch of the lease that this process holds; 0 without one.'),
    refused: ofAccount(
      'payouts_sending_refused',
      '1 while this process must not send: its send journal is damaged or does not match the ledger, or an outcome cannot be recorded.',
    ),
  };
}

/** The metrics omit further currencies: each is a series of every worker. */
const MOST_CURRENCIES = 50;

/** Amounts lose digits here. Only alerts use them. */
type MoneyGauges = ReturnType<typeof createMoneyGauges>;

function createMoneyGauges(registry: Registry) {
  const registers = [registry];
  const ofCurrency = (name: string, help: string): Gauge<'platform_id' | 'currency'> =>
    new Gauge({ name, help, labelNames: ['platform_id', 'currency'], registers });
  return {
    balance: ofCurrency('payouts_balance', 'The balance as the gateway stated it within the last 15 minutes.'),
    balanceNeeded: ofCurrency(
      'payouts_balance_needed',
      'What is queued and has to be paid from the balance of the same labels, in the same unit.',
    ),
    balanceAge: new Gauge({
      name: 'payouts_balance_age_seconds',
      help: 'Since the gateway stated the balance last.',
      labelNames: ['platform_id'],
      registers,
    }),
    unexplained: ofCurrency(
      'payouts_balance_unexplained',
      'What the balance lost without a payout that explains it, until an operator accepts it; 0 while it adds up.',
    ),
    queuedAmount: new Gauge({
      name: 'payouts_queued_amount',
      help: 'The sum of the queued payouts of a currency.',
      labelNames: ['platform_id', 'payment_id', 'currency'],
      registers,
    }),
  };
}

function setMoneyGauges(
  gauges: MoneyGauges,
  platformId: string,
  { queued, currencies, covers, balanceAgeMs, unexplained }: AccountMoney,
): void {
  const account = { platform_id: platformId };
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

type PolicyGauges = ReturnType<typeof createPolicyGauges>;

export function createPolicyGauges(registry: Registry) {
  const registers = [registry];
  return {
    heldByRule: new Gauge({
      name: 'payouts_held',
      help: 'Payouts that a rule of the policy holds, by its verdict: refuse, approve or wait.',
      labelNames: ['platform_id', 'rule', 'kind'],
      registers,
    }),
    policyUsage: new Gauge({
      name: 'payouts_policy_usage_ratio',
      help: 'How much of a window of the policy is used, 0 to 1; of the fullest address or signer where each has its own.',
      labelNames: ['platform_id', 'rule'],
      registers,
    }),
    policyInfo: new Gauge({
      name: 'payouts_policy_info',
      help: '1 for the hash of the policy that this process applies.',
      labelNames: ['platform_id', 'hash'],
      registers,
    }),
    policyReloadFailed: new Gauge({
      name: 'payouts_policy_reload_failed',
      help: '1 while the policy could not be read again, and the one before still counts.',
      labelNames: ['platform_id'],
      registers,
    }),
    rateAge: new Gauge({
      name: 'payouts_rate_age_seconds',
      help: 'Since the oldest rate in dollars that counts was fetched, or asked for without a response; absent where no rule asks for dollars.',
      labelNames: ['platform_id'],
      registers,
    }),
  };
}

export function setPolicyGauges(
  gauges: PolicyGauges,
  { platformId, policy }: Pick<AccountView, 'platformId' | 'policy'>,
  report: PolicyReport | undefined,
  now: number,
): void {
  if (policy === undefined) return;
  const account = { platform_id: String(platformId) };
  gauges.policyInfo.set({ ...account, hash: policy.hash }, 1);
  gauges.policyReloadFailed.set(account, policy.reloadTrouble === undefined ? 0 : 1);
  if (report === undefined) return;
  for (const { rule, reason, count } of report.held) gauges.heldByRule.set({ ...account, rule, kind: reason }, count);
  for (const { rule, buckets } of report.rules) gauges.policyUsage.set({ ...account, rule }, buckets[0]?.ratio ?? 0);
  const ratesAt = report.ratesAt ?? report.ratesMissingSince;
  if (ratesAt !== null) gauges.rateAge.set(account, Math.max(0, now - ratesAt) / 1_000);
}

type JournalGauges = ReturnType<typeof createJournalGauges>;

export function createJournalGauges(registry: Registry) {
  return {
    journalHead: new Gauge({
      name: 'payouts_journal_head_info',
      help: '1 for the hash with which the send journal ended when the process that sends last published it, every ten minutes.',
      labelNames: ['platform_id', 'journal_id', 'head'],
      registers: [registry],
    }),
  };
}

/** The caller has reset the gauges, so the series of an earlier head is gone. */
export function setJournalGauges(
  gauges: JournalGauges,
  { platformId, journalHead }: Pick<AccountView, 'platformId' | 'journalHead'>,
): void {
  if (journalHead === undefined) return;
  const { journalId, hash } = journalHead;
  gauges.journalHead.set({ platform_id: String(platformId), journal_id: journalId, head: hash }, 1);
}

/** @returns what updates the gauges; a key that is revoked or has no end is left out */
export function createKeyGauges(registry: Registry): (keyring: KeyringFacts | undefined) => void {
  const notAfter = new Gauge({
    name: 'payouts_key_not_after_timestamp_seconds',
    help: 'When a key of the keyring ends (seconds since 1970), unless it is revoked: what it signs from then on does not count.',
    labelNames: ['key', 'role'],
    registers: [registry],
  });
  const reloadFailed = new Gauge({
    name: 'payouts_keys_reload_failed',
    help: '1 while the keyring is one that was read before, since its file could not be used when it was read last, else 0.',
    registers: [registry],
  });
  return (keyring) => {
    notAfter.reset();
    reloadFailed.set(keyring?.reloadTrouble === undefined ? 0 : 1);
    for (const { name, role, revoked, notAfter: endsAt } of keyring?.keys ?? []) {
      if (!revoked && endsAt !== undefined) notAfter.set({ key: name, role }, endsAt / 1_000);
    }
  };
}
