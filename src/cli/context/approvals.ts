import { readConfig, type Environment } from '../../config.js';
import type { Payout } from '../../ledger/payout.js';
import { judgeApprovals, type JudgedApproval } from '../../control/approvals/approvable-payout.js';
import { findKeyring } from './keyring.js';

/** Says of a payout's approvals whether they count. */
export type ApprovalJudge = (payout: Payout) => readonly JudgedApproval[];

/**
 * Judges approvals with the keyring of the environment; undefined where there is no keyring.
 * @throws InvalidConfigError when the keyring cannot be used
 */
export function openApprovalJudge(environment: Environment): ApprovalJudge | undefined {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  return (payout) => judgeApprovals(payout, { platformId, keyring, now: Date.now() });
}
