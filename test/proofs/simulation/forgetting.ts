import type { JournalEntry } from '../../../src/journal/journal-line.js';
import { wasSent } from '../../../src/journal/journal-view.js';
import type { JournalFile } from './journal-file.js';
import type { Plan } from './plan.js';
import type { Host, SimHosts } from './sim-hosts.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { World } from './world.js';

export interface ForgettingOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly hosts: SimHosts;
  /** Journals of disks that are gone. */
  readonly lostFiles: readonly JournalFile[];
}

/**
 * What the sending rules assume of a Redis that comes back older: every journal that has a lost send can be read,
 * and where hosts have journals of their own, a worker of each runs and has the quarantine to object. Of a journal that
 * is lost as well, the ledger that comes back knows, or another journal has gone on after it.
 */
export function mayForget(
  kept: WorldLedger | undefined,
  { world, plan, hosts, lostFiles }: ForgettingOptions,
): boolean {
  const forgottenBy = (file: JournalFile): JournalEntry[] => forgottenIn(kept, file);
  const holders = hosts.all.filter(({ file }) => forgottenBy(file).length > 0);
  const newest = Math.max(0, ...holders.flatMap(({ file }) => forgottenBy(file).map(({ sends }) => sends)));
  for (const file of lostFiles) {
    const forgotten = forgottenBy(file);
    if (forgotten.length === 0) continue;
    const isFollowed = newest > Math.max(...forgotten.map(({ sends }) => sends));
    if (holders.length === 0 || !(isFollowed || kept?.hasJournal(file.journalId) === true)) return false;
  }
  if (hosts.all.length === 1) return true;
  const isAwake = ({ running, file }: Host): boolean =>
    file.hangsUntil <= world.now &&
    [...running.values()].some(({ process, worker }) => !process.paused && !worker.isStopping && worker.isOpen);
  if (!holders.every(isAwake)) return false;
  world.calmUntil = world.now + plan.settings.quarantineMs;
  return true;
}

/** The sends of a journal that a copy of the ledger does not know. */
export function forgottenIn(copy: WorldLedger | undefined, file: JournalFile): JournalEntry[] {
  return file
    .items()
    .filter((entry) => 'payoutId' in entry)
    .filter((entry) => wasSent(entry) && copy?.knows(entry) !== true);
}
