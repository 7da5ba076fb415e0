import type { JournalItem } from '../../journal/journal-line.js';
import type { JournalReport } from '../../control/audit/verify-journal.js';

/** A journal of the account: that of this host, or of another that was named. */
export interface AuditedJournal {
  readonly report: JournalReport;
  /** Its sends and what stands between them, from disk. */
  readonly items: () => AsyncGenerator<JournalItem>;
}

/** Which attempts of each payout the journals have: about 100 bytes each. */
export type JournaledSends = ReadonlyMap<string, readonly number[]>;

export function isJournaled(sends: JournaledSends, payoutId: string, attempt: number): boolean {
  return sends.get(payoutId)?.includes(attempt) ?? false;
}

/** Reads every journal for the attempts that it has. */
export async function readJournaledSends(journals: readonly AuditedJournal[]): Promise<JournaledSends> {
  const sends = new Map<string, readonly number[]>();
  for (const { items } of journals) {
    for await (const item of items()) {
      if ('payoutId' in item) sends.set(item.payoutId, [...(sends.get(item.payoutId) ?? []), item.attempt]);
    }
  }
  return sends;
}

/**
 * From when on the journals have every send, wall clock, ms: what is older may stand in a file that was removed, or was sent
 * before one of them began. 0 where an operator stated that nothing is missing.
 */
export function coveredFrom(journals: readonly AuditedJournal[]): number {
  return Math.max(...journals.map(({ report }) => beginOf(report)));
}

function beginOf({ bornAt, prunedUpTo, firstSendAt = Infinity }: JournalReport): number {
  return bornAt === undefined || prunedUpTo > 0 ? firstSendAt : bornAt;
}
