import { formatDuration, formatTimeUtc } from '../base/format.js';
import type { AccountStats } from '../ledger/reads/account-stats.js';
import { type AccountStatistics, estimateEnd } from '../ledger/reads/statistics.js';
import type { Headline } from './account-headline.js';

export interface Backlog {
  readonly queued: number;
  readonly endsInMs: number | null;
  /** Why there is no estimate, as a clause; null if there is one. */
  readonly why: string | null;
}

/** Words for an account's backlog, and for the part of it up to the last payout of a batch. */
export function describeEnd({ endsInMs, why }: Backlog, wallNow: number): string {
  if (endsInMs === null) return `no estimate of its end: ${why ?? 'nothing is sent'}`;
  const at = formatTimeUtc(new Date(wallNow + endsInMs).toISOString());
  return `sent in about ${formatDuration(endsInMs)} (${at})`;
}

/** @param headline - if it says that nothing is sent, it says why there is no end */
export function estimateBacklog(
  {
    stats,
    statistics,
    headline,
  }: {
    readonly stats: AccountStats;
    readonly statistics: AccountStatistics;
    readonly headline?: Pick<Headline, 'tone' | 'headline'> | undefined;
  },
  wallNow: number,
  queued = stats.queued,
): Backlog {
  const stoppedBy = headline?.tone === 'bad' ? headline.headline : undefined;
  const { endsAt, why = null } = estimateEnd(statistics, { ...stats, queued }, wallNow, stoppedBy);
  return { queued, endsInMs: endsAt === undefined ? null : endsAt - wallNow, why };
}
