import { formatDuration } from '../../format.js';
import { compareBalance } from '../../ledger/balance-cover.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readQueuedSums } from '../../ledger/statistics.js';
import { ok, warning, type CheckResult } from './check-result.js';

/** Whether the balance that the worker cached lasts for what is queued. */
export async function checkBalance(connection: LedgerConnection): Promise<CheckResult> {
  const name = 'balance';
  const facts = await readGatewayFacts(connection);
  if (facts.balanceAt === undefined) return ok(name, 'not known yet: a worker that sends queries it');
  const age = `${formatDuration(Math.max(0, connection.clock.wallNow() - facts.balanceAt))} ago`;
  const covers = compareBalance(facts, await readQueuedSums(connection));
  const low = covers.filter(({ isEnough }) => !isEnough);
  if (low.length === 0) return ok(name, `enough for what is queued, as far as it can be compared (${age})`);
  const list = low
    .map(({ currency, balance, queued }) => `${balance} ${currency} for ${queued ?? ''} queued`)
    .join(', ');
  return warning(name, `${list} (${age})`, 'Top the account up, or pause it: the gateway rejects what it cannot pay.');
}
