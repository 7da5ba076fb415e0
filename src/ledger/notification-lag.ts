import { ask, type LedgerConnection } from './ledger-connection.js';
import { replyCode } from '../redis.js';

/** The group of an account's events that `payouts notify` reads. */
export const NOTIFY_GROUP = 'payouts-notify';

/** A longer lag needs an operator: `payouts doctor` and `/readyz` warn, as does the alert PayoutsNotificationsLate. */
export const NOTIFICATIONS_LATE_MS = 5 * 60_000;

/**
 * How long the oldest event has waited that `payouts notify` has not handled, even if no such process runs.
 * @returns ms on the clock of Redis; 0 if there is none; undefined if notifications were never started
 */
export async function readNotificationLag({ redis, keys }: LedgerConnection): Promise<number | undefined> {
  const lastDelivered = await readLastDelivered({ redis, keys });
  if (lastDelivered === undefined) return undefined;
  const [pending, unread, [seconds, microseconds]] = await Promise.all([
    ask(redis.xpending(keys.events, NOTIFY_GROUP, '-', '+', 1)) as Promise<[eventId: string][]>,
    ask(redis.xrange(keys.events, `(${lastDelivered}`, '+', 'COUNT', 1)),
    ask(redis.time()),
  ]);
  const eventId = pending[0]?.[0] ?? unread[0]?.[0];
  const now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
  return eventId === undefined ? 0 : Math.max(0, now - Number.parseInt(eventId, 10));
}

async function readLastDelivered({
  redis,
  keys,
}: Pick<LedgerConnection, 'redis' | 'keys'>): Promise<string | undefined> {
  let groups: unknown[][];
  try {
    groups = (await ask(redis.xinfo('GROUPS', keys.events))) as unknown[][];
  } catch (error) {
    // The one that it has: there is no stream.
    if (replyCode(error) === 'ERR') return undefined;
    throw error;
  }
  const facts = groups.map((pairs) => new Map(pairs.map((value, index) => [value, pairs[index + 1]])));
  const group = facts.find((each) => each.get('name') === NOTIFY_GROUP);
  return group?.get('last-delivered-id') as string | undefined;
}

/** Starts the group with future events: a ledger's history is not notified. An existing group stays. */
export async function startNotifyGroup({ redis, keys }: LedgerConnection): Promise<void> {
  try {
    await ask(redis.xgroup('CREATE', keys.events, NOTIFY_GROUP, '$', 'MKSTREAM'));
  } catch (error) {
    if (replyCode(error) !== 'BUSYGROUP') throw error;
  }
}
