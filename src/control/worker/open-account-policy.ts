import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { writePolicyReport } from '../../ledger/policy-report.js';
import { AccountPolicy, type AccountPolicyOptions } from './account-policy.js';
import { HoldSource } from './hold-source.js';

export interface OpenAccountPolicyOptions extends Omit<
  AccountPolicyOptions,
  'current' | 'source' | 'writeReport' | 'ledger'
> {
  /** Undefined where the account has no policy. */
  readonly current: AccountPolicyOptions['current'] | undefined;
  readonly ledger: PayoutLedger;
}

/** The policy of an account at work on its ledger in Redis; undefined where there is none. */
export function openAccountPolicy({ current, ledger, ...rest }: OpenAccountPolicyOptions): AccountPolicy | undefined {
  if (current === undefined) return undefined;
  const { connection } = ledger;
  return new AccountPolicy({
    ...{ ...rest, current, ledger, source: new HoldSource(connection) },
    writeReport: async (report) => writePolicyReport(connection, report),
  });
}
