import { formatDuration } from '../../format.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readReconciliation } from '../../ledger/reconciliation-store.js';
import { listDrops, summariseDrops } from '../../ledger/unexplained-drops.js';
import { ok, warning, type CheckResult } from './check-result.js';

/** Whether the balance is as the payouts explain, as the worker found it last. */
export async function checkReconciliation(connection: LedgerConnection): Promise<CheckResult> {
  const name = 'reconciliation';
  const [stored, { currencies }] = await Promise.all([readReconciliation(connection), readGatewayFacts(connection)]);
  const { reconciliation } = stored;
  if (reconciliation === undefined) return ok(name, 'not compared yet: a worker that sends does it');
  const drops = summariseDrops(stored, currencies).filter(({ amount }) => amount !== '0');
  const age = `${formatDuration(Math.max(0, connection.clock.wallNow() - reconciliation.comparedAt))} ago`;
  if (drops.length > 0) {
    const fix = `Run \`payouts reconcile --account ${connection.platformId}\`; unless somebody knows of it, change the gateway's secret key.`;
    return warning(name, `the balance fell by ${listDrops(drops)} more than the payouts explain (${age})`, fix);
  }
  const doubtful = reconciliation.balances.filter(({ unexplained }) => unexplained === undefined).length;
  if (doubtful > 0)
    return ok(name, `${doubtful} of ${reconciliation.balances.length} balances cannot be judged now (${age})`);
  return ok(name, `nothing is missing (${age})`);
}
