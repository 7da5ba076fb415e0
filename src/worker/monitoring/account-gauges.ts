import { Gauge, type Registry } from 'prom-client';
import { PAYOUT_STATES, WATCHED_STATES } from '../../ledger/states.js';
import { createKeyGauges } from './control-gauges.js';
import { createJournalGauges, setJournalGauges } from './control-gauges.js';
import { createPolicyGauges, setPolicyGauges } from './control-gauges.js';
import { createMoneyGauges, setMoneyGauges } from './money-gauges.js';
import { viewAccount, type AccountView, type WatchedAccount } from './account-snapshot.js';

/**
 * Makes the gauges that say how the accounts stand.
 * @param stuckAfterMs - a payout in progress for longer than this, in ms, is stuck
 * @returns what brings them up to date before they are read; while Redis is unavailable, what only Redis knows is left out,
 * because an old number would look like a true one, and so it is where another process works for the account
 */
export function createAccountGauges(
  registry: Registry,
  stuckAfterMs: number,
): (accounts: readonly WatchedAccount[]) => Promise<void> {
  const gauges = createGauges(registry);
  const setKeyGauges = createKeyGauges(registry);
  return async (accounts) => {
    const views = await Promise.all(accounts.map(async (account) => viewAccount(account, stuckAfterMs)));
    // From here on without a pause: two readers at the same time must not see half of it.
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
