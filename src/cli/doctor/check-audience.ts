import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { describeOtherGateway } from '../../worker/sender/journal-audit.js';
import { ok, problem, type CheckResult } from './check-result.js';

const NAME = 'audience';

/**
 * For which environment the worker of an account signs, and takes what others signed; and whether the ledger is of its gateway.
 * @param ledger - undefined where Redis cannot be reached
 * @param audience - the worker's
 */
export async function checkAudience(ledger: PayoutLedger | undefined, audience: string): Promise<CheckResult> {
  if (ledger === undefined) return ok(NAME, `"${audience}"`);
  const bound = await ledger.readAudience();
  if (bound === undefined) return ok(NAME, `"${audience}"; the first send binds the ledger to it`);
  if (bound === audience) return ok(NAME, `"${audience}"; the ledger is bound to it`);
  return problem(NAME, describeOtherGateway(bound, audience), 'See "Another gateway" in docs/operations.md.');
}
