import { readGatewayFacts } from './gateway-facts.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from './reconciliation.js';
import { askReadable, type LedgerConnection } from '../ledger-connection.js';

/** What may have cost money already, and comes first in every headline. */
export interface MoneyAtRisk {
  /** Decreases of the balance that no payout explains and no operator accepted. */
  readonly drops: readonly UnexplainedDrop[];
  /** The newest payment that was proved too late; its time is the wall clock's, in ms. */
  readonly paidLate: { readonly payoutId: string; readonly at: number } | undefined;
}

/** @throws RedisUnavailableError */
export async function readMoneyAtRisk(connection: LedgerConnection): Promise<MoneyAtRisk> {
  const { redis, keys } = connection;
  const [reconciliation, [payoutId, at]] = await Promise.all([
    readReconciliation(connection),
    askReadable(redis.zrevrange(keys.late, 0, 0, 'WITHSCORES'), []),
  ]);
  const isMissing = ({ amount }: UnexplainedDrop): boolean => amount !== '0';
  const hasDropped = summariseDrops(reconciliation, []).some(isMissing);
  // Only a drop needs the names of the currencies, which are long and seldom change.
  const { currencies } = hasDropped ? await readGatewayFacts(connection) : { currencies: [] };
  return {
    drops: hasDropped ? summariseDrops(reconciliation, currencies).filter(isMissing) : [],
    paidLate: payoutId === undefined ? undefined : { payoutId, at: Number(at) },
  };
}
