import type { Clock } from '../clock.js';
import type { LedgerConnection } from './ledger-connection.js';
import { readWorkers, senderOf } from './workers.js';
import { holderOf, peekSenderView, type LeaseHolder } from './read-sender-view.js';

export type SenderLife =
  | { readonly kind: 'none' }
  /** Another process took the lease meanwhile. */
  | { readonly kind: 'changing' }
  /** Its heartbeat rose within this time; it sends nothing before `holdOffMs` have passed. */
  | (LeaseHolder & { readonly kind: 'alive'; readonly waitedMs: number; readonly holdOffMs: number })
  /** Its heartbeat did not rise within this time. */
  | (LeaseHolder & { readonly kind: 'silent'; readonly waitedMs: number });

const CHECK_EVERY_MS = 100;

/**
 * Waits for the sender's next heartbeat, due every second: only that proves life, because a dead process's lease stays.
 * Compares no clocks of two machines.
 * @param limitMs - the longest wait; one second and a reserve, to see a healthy sender for certain
 * @throws UnsupportedFormatError
 */
export async function watchHeartbeat(
  connection: LedgerConnection,
  clock: Pick<Clock, 'now' | 'wallNow' | 'sleep'>,
  limitMs: number,
): Promise<SenderLife> {
  const startedAt = clock.now();
  const readHolder = async (): Promise<LeaseHolder | null> => holderOf((await peekSenderView(connection)).lease);
  const first = await readHolder();
  if (first === null) return { kind: 'none' };
  for (;;) {
    const waitedMs = clock.now() - startedAt;
    if (waitedMs >= limitMs) return { ...first, kind: 'silent', waitedMs };
    await clock.sleep(CHECK_EVERY_MS);
    const holder = await readHolder();
    if (holder?.owner !== first.owner || holder.epoch !== first.epoch) return { kind: 'changing' };
    if (holder.heartbeat !== first.heartbeat) {
      const waitedForMs = clock.now() - startedAt;
      const { holdOffUntil = 0 } = senderOf(holder.owner, await readWorkers(connection)) ?? {};
      const holdOffMs = Math.max(0, holdOffUntil - clock.wallNow());
      return { ...first, kind: 'alive', waitedMs: waitedForMs, holdOffMs };
    }
  }
}
