import { Gauge, type Registry } from 'prom-client';
import { systemClock } from '../../base/clock.js';
import { createLedgerGauges, findUnserved } from '../../operator/account-gauges.js';
import { UnservedAccounts } from '../../operator/unserved-accounts.js';
import type { KeyringFacts } from '../account-control.js';
import { type AccountView, viewAccount, type MonitoredAccount } from './account-snapshot.js';

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
  const setLedgerGauges = createLedgerGauges(registry);
  const unserved = new UnservedAccounts(systemClock);
  return async (accounts) => {
    const connections = accounts.map(({ ledger }) => ledger.connection);
    const [found, ...views] = await Promise.all([
      findUnserved(unserved, connections),
      ...accounts.map(async (account) => viewAccount(account, stuckAfterMs)),
    ]);
    // No await from here on: a concurrent reader must not see half of it.
    for (const gauge of Object.values(gauges)) gauge.reset();
    setKeyGauges(accounts[0]?.keyring);
    gauges.mayForget.set(accounts.some(({ redis }) => redis.mayForget) ? 1 : 0);
    for (const { platformId, missingReplicas } of accounts) {
      for (const { name, since } of missingReplicas.slice(0, SHOWN_REPLICAS))
        gauges.replicaMissingSince.set({ platform_id: String(platformId), replica: name }, since / 1_000);
    }
    gauges.refusesWrites.set(views.some(({ writeRefusal }) => writeRefusal !== undefined) ? 1 : 0);
    for (const { clockOffsetMs } of views) {
      if (clockOffsetMs !== undefined) gauges.clockOffset.set(clockOffsetMs / 1_000);
    }
    for (const view of views) setGauges(gauges, view);
    const read = views.flatMap(({ platformId, details }) => (details === undefined ? [] : [{ platformId, details }]));
    setLedgerGauges(read, views.length > 0 && views.every(({ redisIsUp }) => redisIsUp), found);
  };
}

/** Names are from Redis, where someone could store any number of them. */
const SHOWN_REPLICAS = 20;

type Gauges = ReturnType<typeof createGauges>;

function setGauges(gauges: Gauges, view: AccountView): void {
  const { platformId, status, policy, journalHead } = view;
  const account = { platform_id: String(platformId) };
  const epoch = 'epoch' in status ? status.epoch : 0;
  gauges.leaseHeld.set(account, epoch > 0 ? 1 : 0);
  gauges.leaseEpoch.set(account, epoch);
  gauges.refused.set(
    account,
    status.role === 'refused' && status.cause !== 'redis' && status.cause !== 'replicas' ? 1 : 0,
  );
  if (policy !== undefined) {
    gauges.policyInfo.set({ ...account, hash: policy.hash }, 1);
    gauges.policyReloadFailed.set(account, policy.reloadTrouble === undefined ? 0 : 1);
  }
  if (journalHead !== undefined) gauges.journalHeadAt.set(account, journalHead.at / 1_000);
  gauges.archiveFailed.set(account, view.work.archiveTrouble === undefined ? 0 : 1);
}

function createGauges(registry: Registry) {
  const registers = [registry];
  const ofAccount = (name: string, help: string): Gauge<'platform_id'> =>
    new Gauge({ name, help, labelNames: ['platform_id'], registers });
  return {
    mayForget: new Gauge({
      name: 'payouts_redis_may_forget',
      help: '1 while this process sends nothing because of settings with which Redis may forget what was sent, else 0.',
      registers,
    }),
    replicaMissingSince: new Gauge({
      name: 'payouts_replica_missing_since_timestamp_seconds',
      help: 'Since when a replica of Redis does not acknowledge writes although each send needs it (seconds since 1970), by its address; `unknown` if that is not known. Nothing is sent meanwhile.',
      labelNames: ['platform_id', 'replica'],
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
    archiveFailed: ofAccount(
      'payouts_archive_failed',
      '1 while old payouts stay in Redis because the archive cannot be written (PAYOUT_ARCHIVE_DIR), else 0.',
    ),
    policyInfo: new Gauge({
      name: 'payouts_policy_info',
      help: '1 for the hash of the policy that this process applies.',
      labelNames: ['platform_id', 'hash'],
      registers,
    }),
    policyReloadFailed: ofAccount(
      'payouts_policy_reload_failed',
      '1 while the policy could not be read again, and the one before still counts.',
    ),
    journalHeadAt: ofAccount(
      'payouts_journal_head_timestamp_seconds',
      'When the process that sends last published the head of its send journal (seconds since 1970); the event journal_head has the head.',
    ),
    leaseHeld: ofAccount('payouts_lease_held', '1 in the one process that sends for the account, else 0.'),
    leaseEpoch: ofAccount('payouts_lease_epoch', 'The epoch of the lease that this process holds; 0 without one.'),
    refused: ofAccount(
      'payouts_sending_refused',
      '1 while this process must not send: its send journal is damaged, its disk does not answer or it does not match the ledger, or an outcome cannot be recorded.',
    ),
  };
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
