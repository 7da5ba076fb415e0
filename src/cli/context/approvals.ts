import { readConfig, type Environment } from '../../config.js';
import { readKeyringFile } from '../../control/keyring-file.js';
import type { Payout } from '../../ledger/payout.js';
import { judgeApprovals, type JudgedApproval } from '../../operator/approvable-payout.js';

const FILE = 'PAYOUT_KEYS_FILE';

/** Says of a payout's approvals whether they count. */
export type ApprovalJudge = (payout: Payout) => readonly JudgedApproval[];

/**
 * Judges approvals with the keyring of the environment; undefined where there is no keyring.
 * @throws InvalidConfigError when the keyring cannot be used
 */
export function openApprovalJudge(environment: Environment): ApprovalJudge | undefined {
  const { [FILE]: path } = readConfig([FILE], environment);
  if (path === undefined) return undefined;
  const keyring = readKeyringFile(path, FILE);
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  return (payout) => judgeApprovals(payout, { platformId, keyring, now: Date.now() });
}
