import type { PayoutArchive } from '../archive/payout-archive.js';
import { within } from '../clock.js';
import { type Payout, UnreadableRecordError } from '../ledger/payout.js';
import { parseRecord } from '../ledger/payout-record.js';
import type { OldPayout } from '../ledger/remove-payouts.js';

/** The archive could not be written in time, or at all: what was to be kept stays in Redis. */
export class ArchiveTroubleError extends Error {}

/** A folder on a network may hang. The sender waits for this task when it gives its lease back. */
const KEEP_WITHIN_MS = 5_000;

/** What became of payouts that were to be kept. */
export interface KeptPayouts {
  /** What is on disk now, and ids that have no record any more. */
  readonly removable: readonly OldPayout[];
  /** Ids of records that make no sense, as where somebody has altered them. */
  readonly unreadable: readonly string[];
}

/**
 * Writes those of the payouts to the archive that are old enough to be removed.
 * @param before - wall clock, ms: those that came into their state earlier
 * @throws ArchiveTroubleError
 */
export async function keepInArchive(
  archive: PayoutArchive,
  oldest: readonly OldPayout[],
  before: number,
): Promise<KeptPayouts> {
  const removable: OldPayout[] = [];
  const unreadable: string[] = [];
  const payouts: Payout[] = [];
  for (const old of oldest) {
    const payout = isGone(old) ? undefined : readRecord(old);
    if (isGone(old)) removable.push(old);
    else if (payout === undefined) unreadable.push(old.payoutId);
    else if (Date.parse(payout.updatedAt) < before) {
      removable.push(old);
      payouts.push(payout);
    }
  }
  if (payouts.length > 0) await keep(archive, payouts);
  return { removable, unreadable };
}

async function keep(archive: PayoutArchive, payouts: readonly Payout[]): Promise<void> {
  let isKept: true | undefined;
  try {
    isKept = await within(
      KEEP_WITHIN_MS,
      archive.keep(payouts).then(() => true as const),
    );
  } catch (error) {
    throw new ArchiveTroubleError((error as Error).message, { cause: error });
  }
  if (isKept === undefined) {
    throw new ArchiveTroubleError(
      `The archive was not on disk within ${KEEP_WITHIN_MS} ms. Set PAYOUT_ARCHIVE_DIR to a faster disk; until then no payout is removed`,
    );
  }
}

function readRecord({ payoutId, record }: OldPayout): Payout | undefined {
  try {
    return parseRecord(payoutId, record);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return undefined;
    throw error;
  }
}

/** An earlier removal ended before it came to the index. */
function isGone({ record }: OldPayout): boolean {
  return Object.keys(record).length === 0;
}
