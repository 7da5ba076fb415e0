import type { AccountStats } from './account-stats.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { MINUTE_MS, parseHourFields, type MinuteStatistics } from './minute-rows.js';
import { STREAM_BEGINNING, timeOfEvent } from './state-events.js';
import { PAYOUT_STATES, type PayoutState } from './states.js';

export type { MinuteStatistics } from './minute-rows.js';

/** What an account did, derived from its events by the sender's process: a few seconds behind the ledger. */
export interface AccountStatistics {
  /** When the newest event that is counted happened, by Redis's clock, ms; undefined before the first. */
  readonly asOf: number | undefined;
  /** The last 24 hours, oldest first; minutes without events are left out. */
  readonly minutes: readonly MinuteStatistics[];
  /** What is in each state, by currency. */
  readonly sums: Readonly<Record<PayoutState, readonly CurrencySum[]>>;
  /** What happened today (UTC), by currency. */
  readonly today: Readonly<Record<CountedToday, readonly CurrencySum[]>>;
  /** When the last send began, by Redis's clock, ms. */
  readonly lastSendAt: number | undefined;
}

/** Payouts of one currency, with their exact sum. */
export interface CurrencySum {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  readonly count: number;
  /** A decimal string. */
  readonly amount: string;
}

/** What is summed by day. */
export const COUNTED_TODAY = ['sent', 'completed', 'rejected', 'failed'] as const;
export type CountedToday = (typeof COUNTED_TODAY)[number];

export const DAY_MS = 24 * 60 * MINUTE_MS;

/** The last 10 minutes say how fast it goes. */
const RATE_MINUTES = 10;

/**
 * Reads the statistics; before the first sender, everything is 0.
 * @throws RedisUnavailableError
 */
export async function readStatistics({ redis, keys, clock }: LedgerConnection): Promise<AccountStatistics> {
  return parseStatistics(await ask(redis.hgetall(keys.statistics)), clock.wallNow());
}

/** What is queued, by currency: the part of the statistics that every scrape reads. @throws RedisUnavailableError */
export async function readQueuedSums({ redis, keys }: LedgerConnection): Promise<readonly CurrencySum[]> {
  const sums = parseField((await ask(redis.hget(keys.statistics, 'sums'))) ?? undefined);
  return (sums as Partial<AccountStatistics['sums']> | undefined)?.queued ?? [];
}

/** @param stored - the fields of the hash */
export function parseStatistics(stored: Readonly<Record<string, string>>, wallNow: number): AccountStatistics {
  const sums = (parseField(stored['sums']) ?? {}) as Partial<AccountStatistics['sums']>;
  const today = parseField(stored['today']) as (Partial<AccountStatistics['today']> & { day: number }) | undefined;
  const isToday = today?.day === Math.floor(wallNow / DAY_MS);
  const position = (parseField(stored['position']) ?? STREAM_BEGINNING) as string;
  return {
    asOf: position === STREAM_BEGINNING ? undefined : timeOfEvent(position),
    minutes: parseHourFields(stored).filter(({ at }) => at > wallNow - DAY_MS),
    sums: Object.fromEntries(PAYOUT_STATES.map((state) => [state, sums[state] ?? []])) as AccountStatistics['sums'],
    today: Object.fromEntries(
      COUNTED_TODAY.map((kind) => [kind, (isToday ? today[kind] : undefined) ?? []]),
    ) as AccountStatistics['today'],
    lastSendAt: parseField(stored['lastSendAt']) as number | undefined,
  };
}

/** The fields of the hash are JSON. */
export function parseField(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** How fast the backlog is sent, and when it will be. */
export interface BacklogEstimate {
  /** Sends a minute, measured over those of the last 10 minutes that began with a backlog; where there is none, over all 10. */
  readonly ratePerMinute: number;
  /**
   * Wall clock, ms; undefined when it cannot be said: nothing was sent of late, the account is stopped, or nobody sends.
   * Payouts whose `notBefore` is later come on top.
   */
  readonly endsAt: number | undefined;
}

/** Says when the backlog will be sent, if everything continues as in the last minutes. */
export function estimateEnd(
  { minutes }: Pick<AccountStatistics, 'minutes'>,
  { queued, paused, objections, sender }: Pick<AccountStats, 'queued' | 'paused' | 'objections' | 'sender'>,
  wallNow: number,
): BacklogEstimate {
  const isStopped = paused || objections.length > 0 || sender === null;
  const busy = measure(minutes, wallNow, (backlogBefore) => backlogBefore > 0);
  const { sent, lastedMs } = busy.lastedMs > 0 ? busy : measure(minutes, wallNow, () => true);
  const ratePerMinute = lastedMs === 0 ? 0 : (sent * MINUTE_MS) / lastedMs;
  if (isStopped) return { ratePerMinute, endsAt: undefined };
  if (queued === 0) return { ratePerMinute, endsAt: wallNow };
  const isMeasured = busy.lastedMs > 0 && sent > 0;
  return { ratePerMinute, endsAt: isMeasured ? wallNow + (queued / ratePerMinute) * MINUTE_MS : undefined };
}

/** Sends in those of the last minutes that began with such a backlog, and how long these minutes lasted together. */
function measure(
  minutes: AccountStatistics['minutes'],
  wallNow: number,
  counts: (backlogBefore: number) => boolean,
): { sent: number; lastedMs: number } {
  const current = Math.floor(wallNow / MINUTE_MS) * MINUTE_MS;
  let backlogBefore = minutes.findLast(({ at }) => at < current - (RATE_MINUTES - 1) * MINUTE_MS)?.backlog ?? 0;
  let sent = 0;
  let lastedMs = 0;
  for (let at = current - (RATE_MINUTES - 1) * MINUTE_MS; at <= current; at += MINUTE_MS) {
    const minute = minutes.find((other) => other.at === at);
    if (counts(backlogBefore)) {
      sent += minute?.sent ?? 0;
      lastedMs += Math.min(MINUTE_MS, wallNow - at);
    }
    backlogBefore = minute?.backlog ?? backlogBefore;
  }
  return { sent, lastedMs };
}
