import { readGatewayFacts } from './gateway-facts.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from './reconciliation.js';
import { toLine } from '../payout.js';
import { askReadable, type LedgerConnection } from '../ledger-connection.js';

interface PayoutMoment {
  readonly payoutId: string;
  readonly at: number;
}

/** What may have cost money already, and comes first in every headline. */
export interface MoneyAtRisk {
  /** Decreases of the balance that no payout explains and no operator accepted. */
  readonly drops: readonly UnexplainedDrop[];
  /** The newest payment that was proved too late; its time is the wall clock's, in ms. */
  readonly paidLate: PayoutMoment | undefined;
  /** The last payout that was held because someone had altered it; its time is the wall clock's, in ms. */
  readonly tampering: PayoutMoment | undefined;
  /**
   * The last payout whose order id the gateway has for another payment, not for the payout's; its time is the wall
   * clock's, in ms.
   */
  readonly otherPayment: PayoutMoment | undefined;
}

/** @throws RedisUnavailableError */
export async function readMoneyAtRisk(connection: LedgerConnection): Promise<MoneyAtRisk> {
  const { redis, keys } = connection;
  const [reconciliation, [payoutId, at], [tampering, otherPayment]] = await Promise.all([
    readReconciliation(connection),
    askReadable(redis.zrevrange(keys.late, 0, 0, 'WITHSCORES'), []),
    askReadable(redis.hmget(keys.ledger, 'tampering', 'otherPayment'), []),
  ]);
  const isMissing = ({ amount }: UnexplainedDrop): boolean => amount !== '0';
  const hasDropped = summariseDrops(reconciliation, []).some(isMissing);
  // Only a drop needs the names of the currencies, which are long and seldom change.
  const { currencies } = hasDropped ? await readGatewayFacts(connection) : { currencies: [] };
  return {
    drops: hasDropped ? summariseDrops(reconciliation, currencies).filter(isMissing) : [],
    paidLate: payoutId === undefined ? undefined : { payoutId, at: Number(at) },
    tampering: parseMoment(tampering ?? ''),
    otherPayment: parseMoment(otherPayment ?? ''),
  };
}

/** @param stored - time and payoutId; who alters payouts may alter this too */
function parseMoment(stored: string): PayoutMoment | undefined {
  const [, at, payoutId] = /^(\d{1,15}) (.+)$/.exec(stored) ?? [];
  return payoutId === undefined ? undefined : { payoutId: toLine(payoutId), at: Number(at) };
}
