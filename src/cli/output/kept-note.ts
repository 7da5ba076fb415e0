import { systemClock } from '../../base/clock.js';
import { RedisUnavailableError, UnreadableRecordError } from '../../base/errors.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { formatCommand } from '../../operator/next-steps.js';
import type { SenderView } from '../../ledger/sender-ledger.js';
import { peekSenderView } from '../../ledger/sender-view.js';

/** The sender notes acts every two seconds. */
const KEPT_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 250;

/**
 * Says which worker has what was just done on its disk: until one has, an older copy of Redis undoes it, and nothing
 * notices. Waits some seconds if a worker runs.
 * @param toKeep - what undoes the loss, if no worker has it: a sentence, or a sentence and lines to store
 * @param signal - ends the wait
 */
export async function describeKept(
  connection: LedgerConnection,
  toKeep: string,
  signal?: AbortSignal,
): Promise<string> {
  const first = await look(connection);
  const endsAt = systemClock.now() + (first?.lease?.released === false ? KEPT_WITHIN_MS : 0);
  for (let view = first; first !== undefined; view = await look(connection)) {
    if (view !== undefined && view.keptActs >= first.acts) return describeKeeper(view);
    if (systemClock.now() >= endsAt || signal?.aborted === true) break;
    await systemClock.sleep(LOOK_EVERY_MS, signal);
  }
  return `No worker is known to have it on its disk. ${toKeep}\n`;
}

/** @returns undefined if Redis is unavailable, or was altered: what was done must be kept even more */
async function look(connection: LedgerConnection): Promise<SenderView | undefined> {
  try {
    return await peekSenderView(connection);
  } catch (error) {
    if (error instanceof RedisUnavailableError || error instanceof UnreadableRecordError) return undefined;
    throw error;
  }
}

function describeKeeper({ lease }: SenderView): string {
  const worker = lease === undefined || lease.owner === '' ? 'A worker' : `Worker ${lease.owner}`;
  return `${worker} has it on its disk: if Redis comes back without it, the account stops.\n`;
}

export const KEEP_COMMAND =
  'Keep this command: if Redis comes back from an older copy before a worker has run, run it again.';

/**
 * The command that undoes what was just cancelled. What was ever begun, signed or rejected it refuses.
 * @param choice - how the payouts were chosen: ids, or options of `payouts uncancel`
 */
export function describeUndo(choice: readonly string[], platformId: number): string {
  const command = formatCommand({ name: 'uncancel', args: [...choice, '--reason', 'WHY'] }, platformId);
  return `A mistake? Within the hour, what was never sent is paid after all, under a new id: \`${command}\`\n`;
}
