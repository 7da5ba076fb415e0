import { Gauge, type Registry } from 'prom-client';
import type { PolicyReport } from '../../ledger/policy-report.js';
import type { KeyringFacts } from '../account-control.js';
import type { AccountView } from './account-snapshot.js';

/** Gauges of what a policy counts and holds. */
export type PolicyGauges = ReturnType<typeof createPolicyGauges>;

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
      help: '1 for the hash of the policy by which this process judges.',
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

/** @param now - wall clock, ms  @param report - of the process that sends; undefined where there is none */
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

/** Gauges of the send journal. */
export type JournalGauges = ReturnType<typeof createJournalGauges>;

export function createJournalGauges(registry: Registry) {
  return {
    journalHead: new Gauge({
      name: 'payouts_journal_head_info',
      help: '1 for the hash with which the send journal ended when the process that sends told it last, every ten minutes.',
      labelNames: ['platform_id', 'journal_id', 'head'],
      registers: [registry],
    }),
  };
}

/** The gauges were reset before: the series of an earlier head is gone. */
export function setJournalGauges(
  gauges: JournalGauges,
  { platformId, journalHead }: Pick<AccountView, 'platformId' | 'journalHead'>,
): void {
  if (journalHead === undefined) return;
  const { journalId, hash } = journalHead;
  gauges.journalHead.set({ platform_id: String(platformId), journal_id: journalId, head: hash }, 1);
}

/**
 * Makes the gauges of a keyring: when its keys end, and whether it could be read again.
 * @returns what brings it up to date; a key that is revoked, or has no end, is left out
 */
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
