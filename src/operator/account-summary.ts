import { systemClock, within } from '../base/clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../base/errors.js';
import { readAccountStats } from '../ledger/reads/account-stats.js';
import { readGatewayFacts } from '../ledger/reads/gateway-facts.js';
import { listReadable } from '../ledger/reads/payout-queries.js';
import { readStatistics } from '../ledger/reads/statistics.js';
import type { AccountAccess } from '../queues/open-account.js';
import { type AccountAdvice, adviseAccount } from './account-advice.js';
import { accountHeadline, type Headline, otherVersionHeadline } from './account-headline.js';
import { AccountPoller, type LedgerObservation } from './account-poller.js';
import type { AdviceOptions } from './next-steps.js';

/** An account in one look. */
export interface AccountSummary extends Headline {
  readonly platformId: number;
  /** What stops the account until an operator runs the command. */
  readonly advice: readonly AccountAdvice[];
  /** Undefined if Redis does not respond. */
  readonly ledger: LedgerFacts | undefined;
}

interface LedgerFacts {
  /** Process and random word of the lease's owner; null if no process holds it. */
  readonly sender: string | null;
  readonly lastSendAgoMs: number | null;
  readonly due: number;
  readonly sending: number;
  readonly held: number;
}

const READ_WITHIN_MS = 2_000;

/** Waits up to two seconds for a heartbeat of the sender: only that proves life. */
export async function readAccountSummary(account: AccountAccess, options: AdviceOptions): Promise<AccountSummary> {
  const { connection } = account.ledger;
  const { platformId } = connection;
  const watch = new AccountPoller(account, systemClock);
  try {
    const observation = await watch.visitSender();
    const read = observation.redis.kind === 'up' ? await readFacts(account.ledger.connection) : undefined;
    if (read === undefined) {
      const redis = { kind: 'unavailable', sinceMs: 0, reason: 'it does not reply' } as const;
      const lost = observation.redis.kind === 'up' ? { redis, ledger: undefined } : observation;
      return { platformId, ...accountHeadline(lost), advice: [], ledger: undefined };
    }
    const { stats, lastSendAt, ...facts } = read;
    return {
      platformId,
      ...accountHeadline(observation, facts),
      advice: adviseAccount(stats, options),
      ledger: observation.ledger && describeLedger(observation.ledger, lastSendAt),
    };
  } catch (error) {
    if (!(error instanceof UnsupportedFormatError)) throw error;
    return { platformId, ...otherVersionHeadline(error), advice: [], ledger: undefined };
  } finally {
    watch.close();
  }
}

async function readFacts(connection: AccountAccess['ledger']['connection']) {
  const reading = Promise.all([
    readAccountStats(connection),
    readStatistics(connection),
    readGatewayFacts(connection),
    listReadable(connection, { state: 'held', limit: 1 }),
  ]);
  const found = await within(READ_WITHIN_MS, reading).catch((error: unknown) => {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  const [stats, { sums, lastSendAt }, gateway, held] = found;
  return { stats, lastSendAt, gateway, heldSums: sums.held, firstHeld: held[0] };
}

function describeLedger(
  { life, wallNow, due, sending, held }: LedgerObservation,
  lastSendAt: number | undefined,
): LedgerFacts {
  const lastSendAgoMs = lastSendAt === undefined ? null : Math.max(0, wallNow - lastSendAt);
  return { sender: life.kind === 'none' ? null : life.owner, lastSendAgoMs, due, sending, held };
}
