import { folderPath, type ArchiveFolder } from '../../archive/archive-files.js';
import type { Clock } from '../../clock.js';
import type { AccountOptions } from '../../worker/payout-worker.js';
import { findExisting, timeSync } from './check-journal-folder.js';
import { ok, warning, type CheckResult } from './check-result.js';

/** Whether the worker can write an account's archive. Payouts are sent in any case; where it cannot, Redis grows. */
export async function checkArchiveFolder(
  folder: ArchiveFolder,
  { retentionDays }: Pick<AccountOptions, 'retentionDays'>,
  clock: Clock,
): Promise<CheckResult> {
  const name = 'archive folder';
  const path = folderPath(folder);
  if (retentionDays === undefined) {
    return warning(
      name,
      `nothing is archived in ${path}: every payout stays in Redis`,
      'Set PAYOUT_RETENTION_DAYS, or leave PAYOUT_ARCHIVE_DIR out.',
    );
  }
  try {
    const existing = await findExisting(path);
    await timeSync(existing, clock);
    return ok(name, `${path} is writable${existing === path ? '' : ' (created by the worker)'}`);
  } catch (error) {
    return warning(
      name,
      `${path} cannot be written: ${(error as Error).message}`,
      'Set PAYOUT_ARCHIVE_DIR to a folder that the worker can write, on a persistent disk with free space; until then no payout is removed from Redis.',
    );
  }
}
