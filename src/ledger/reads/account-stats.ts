import type { ChainableCommander } from 'ioredis';
import { ask, checkFormat, type LedgerConnection, pipelinedReadable } from '../ledger-connection.js';
import { LAST_TIME_MS, toIsoTime } from '../../base/format.js';
import { parseHistoryEntry } from '../payout-record.js';
import { holderOf, parseJournals, parseLease, parseObjections, parsePauses } from '../sender-view.js';
import { parseOutboxMember, PAYOUT_STATES, type PayoutState, WATCHED_STATES, type WatchedState } from '../states.js';
import type { KnownJournal, Objection, Pause } from '../sender-ledger.js';

/** An account at a glance. Programs that read `payouts stats --json` rely on the field names. */
export interface AccountStats extends Readonly<Record<PayoutState, number>> {
  readonly platformId: number;
  readonly paused: boolean;
  readonly pausedReason: string | null;
  readonly pausedBy: string | null;
  /** ISO 8601, UTC. */
  readonly pausedAt: string | null;
  /** All pauses, the oldest first, which the fields above have too: each who paused the account has one. */
  readonly pauses: readonly Pause[];
  /** The send journals that contradict the ledger, and why. While there is one, nothing is sent, paused or not. */
  readonly objections: readonly Objection[];
  /** The known send journals that have sends of this account. */
  readonly journals: readonly KnownJournal[];
  /** Payouts whose payment was proved too late, see `lateGatewayId`. */
  readonly latePayments: number;
  /** The lease's holder; null if no process ever had it, or the last one gave it back. */
  readonly sender: { readonly owner: string; readonly epoch: number; readonly heartbeat: number } | null;
  /** Sends begun since the ledger exists. */
  readonly sends: number;
  readonly rejectionsInARow: number;
  readonly unknownsInARow: number;
  /** Payouts whose job has yet to be added to a queue. */
  readonly withoutJob: number;
  /** Members among the outbox's oldest 1,000 that this version does not know; none is a payout. */
  readonly outboxUnreadable: number;
  /**
   * How long the oldest payout has been in the state, in ms; null if there is none. One that was put back unsent counts
   * from when it was first `queued`.
   */
  readonly oldestAgeMs: Readonly<Record<WatchedState, number | null>>;
  /**
   * Redis keys of the account that cannot be read, because someone has altered them: those of another type, and the
   * records of the oldest payouts of a state. What they hold is left out above.
   */
  readonly unreadable: readonly string[];
}

const OUTBOX_READ = 1_000;

/** Takes three round trips, whatever the backlog. @throws UnsupportedFormatError */
export async function readAccountStats(connection: LedgerConnection): Promise<AccountStats> {
  const { keys } = connection;
  const { replies, unreadable } = await pipelinedReadable(connection, (pipeline) => {
    pipeline.hgetall(keys.ledger).hgetall(keys.sender).hgetall(keys.journals).hgetall(keys.objections);
    pipeline
      .zrange(keys.outbox, '0', String(OUTBOX_READ - 1))
      .zcard(keys.outbox)
      .zcard(keys.late);
    for (const { key, isStream } of PAYOUT_STATES.map((state) => keys.stateIndex(state)))
      if (isStream) pipeline.xlen(key);
      else pipeline.zcard(key);
    for (const state of WATCHED_STATES) pipeline.zrange(keys.state(state), '0', '0');
    // Read elsewhere, each by its own reader; here only to tell those of another type.
    pipeline.hlen(keys.gateway).hlen(keys.statistics).hlen(keys.batches).hlen(keys.workers).strlen(keys.policy);
    pipeline
      .xlen(keys.events)
      .xlen(keys.activity)
      .xlen(keys.spent)
      .scard(keys.recheck)
      .zcard(keys.unkept)
      .zcard(keys.unreceipted);
  });
  const [ledger = {}, sender = {}, journals = {}, objections = {}] = replies as Record<string, string>[];
  checkFormat(ledger['format']);
  const [outbox = [], outboxSize = 0, latePayments = 0, ...rest] = replies.slice(4) as [
    string[]?,
    number?,
    number?,
    ...unknown[],
  ];
  const outboxUnreadable = outbox.filter((member) => 'unknownMember' in parseOutboxMember(member)).length;
  const counts = Object.fromEntries(PAYOUT_STATES.map((state) => [state, (rest.shift() as number | undefined) ?? 0]));
  const oldest = WATCHED_STATES.map((_, index) => ((rest[index] as string[] | undefined) ?? [])[0]);
  const ages = await readAges(connection, oldest);
  return {
    platformId: connection.platformId,
    ...(counts as Record<PayoutState, number>),
    paused: ledger['pausedReason'] !== undefined,
    pausedReason: ledger['pausedReason'] ?? null,
    pausedBy: ledger['pausedBy'] ?? null,
    pausedAt: ledger['pausedAt'] === undefined ? null : toIsoTime(Number(ledger['pausedAt'])),
    pauses: parsePauses(ledger),
    objections: parseObjections(objections),
    journals: parseJournals(journals),
    latePayments,
    sender: holderOf(parseLease(sender)),
    sends: Number(sender['sends'] ?? 0),
    rejectionsInARow: Number(ledger['rejectionsInARow'] ?? 0),
    unknownsInARow: Number(ledger['unknownsInARow'] ?? 0),
    withoutJob: outboxSize - outboxUnreadable,
    outboxUnreadable,
    oldestAgeMs: ages.oldestAgeMs,
    unreadable: [...unreadable, ...ages.unreadable],
  };
}

type Ages = Pick<AccountStats, 'oldestAgeMs' | 'unreadable'>;

async function readAges(connection: LedgerConnection, oldest: readonly (string | undefined)[]): Promise<Ages> {
  const first = await readEntryTimes(
    connection,
    oldest.filter((payoutId) => payoutId !== undefined),
  );
  const now = connection.clock.wallNow();
  const unreadable: string[] = [];
  const ages: Partial<Record<WatchedState, number | null>> = {};
  for (const [index, state] of WATCHED_STATES.entries()) {
    const payoutId = oldest[index];
    const at = payoutId === undefined ? undefined : first.get(payoutId);
    if (payoutId !== undefined && at === undefined) unreadable.push(connection.keys.payout(payoutId));
    const known = payoutId === undefined ? undefined : (at ?? (await findNextTime(connection, state)));
    ages[state] = known === undefined ? null : Math.max(0, now - known);
  }
  return { oldestAgeMs: ages as AccountStats['oldestAgeMs'], unreadable };
}

const READ_AT_ONCE = 100;

/** Of the oldest payout whose record can be read. */
async function findNextTime(connection: LedgerConnection, state: WatchedState): Promise<number | undefined> {
  const { redis, keys } = connection;
  for (let start = 0; ; start += READ_AT_ONCE) {
    const payoutIds = await ask(redis.zrange(keys.state(state), start, String(start + READ_AT_ONCE - 1)));
    const times = await readEntryTimes(connection, payoutIds);
    const known = payoutIds.find((payoutId) => times.has(payoutId));
    if (known !== undefined) return times.get(known);
    if (payoutIds.length < READ_AT_ONCE) return undefined;
  }
}

/** When each payout entered its present state, ms since 1970; without those that cannot be read. */
async function readEntryTimes(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<Map<string, number>> {
  const each = async (fill: (pipeline: ChainableCommander, key: string, index: number) => void): Promise<unknown[]> => {
    const { replies } = await pipelinedReadable(connection, (pipeline) => {
      payoutIds.forEach((payoutId, index) => {
        fill(pipeline, connection.keys.payout(payoutId), index);
      });
    });
    return replies;
  };
  const records = await each((pipeline, key) => pipeline.hmget(key, 'n', 'state', 'queuedSince'));
  const facts = records as ([string | null, string | null, string | null] | undefined)[];
  const entries = await each((pipeline, key, index) => pipeline.hget(key, `h${Number(facts[index]?.[0]) - 1}`));
  const times = new Map<string, number>();
  for (const [index, payoutId] of payoutIds.entries()) {
    const [, state, queuedSince] = facts[index] ?? [];
    const { at } = parseHistoryEntry((entries[index] as string | null | undefined) ?? '');
    const time = state === 'queued' && queuedSince ? Number(queuedSince) : at;
    if (time >= 0 && time <= LAST_TIME_MS) times.set(payoutId, time);
  }
  return times;
}
