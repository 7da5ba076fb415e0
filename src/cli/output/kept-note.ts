import { systemClock } from '../../base/clock.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { peekSenderView } from '../../ledger/sender-view.js';

/** The sender notes acts every two seconds. */
const KEPT_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 250;

/**
 * Says whether a worker has what was just done on its disk: until then an older copy of Redis undoes it, and nothing
 * notices. Waits some seconds if a worker runs.
 */
export async function describeKept(connection: LedgerConnection): Promise<string> {
  const { redis, keys, platformId } = connection;
  const { acts, lease } = await peekSenderView(connection);
  const endsAt = systemClock.now() + (lease === undefined || lease.released ? 0 : KEPT_WITHIN_MS);
  for (;;) {
    const kept = Number((await ask(redis.hget(keys.ledger, 'keptActs'))) ?? 0);
    if (kept >= acts) return 'A worker has it on its disk: an older copy of Redis does not undo it.\n';
    if (systemClock.now() >= endsAt) break;
    await systemClock.sleep(LOOK_EVERY_MS);
  }
  return `No worker has it on its disk yet. Keep this line: act ${acts} of account ${platformId}. If Redis comes back from an older copy before a worker has run, run the command again.\n`;
}
