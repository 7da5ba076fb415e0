import type { ChainableCommander } from 'ioredis';
import { checkFormat, type LedgerConnection, pipelined } from '../ledger-connection.js';
import { parseHistoryEntry } from '../payout-record.js';
import { holderOf, parseJournals, parseLease, parseObjections, parsePauses } from '../sender-view.js';
import {
  ENDED_STATES,
  parseOutboxMember,
  PAYOUT_STATES,
  type PayoutState,
  WATCHED_STATES,
  type WatchedState,
} from '../states.js';
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
  /** Payouts whose payment was proved too late, see `lateTxhash`. */
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
}

const OUTBOX_READ = 1_000;

/** Takes three round trips, whatever the backlog. @throws UnsupportedFormatError */
export async function readAccountStats(connection: LedgerConnection): Promise<AccountStats> {
  const { keys } = connection;
  const replies = await pipelined(connection, (pipeline) => {
    pipeline.hgetall(keys.ledger).hgetall(keys.sender).hgetall(keys.journals).hgetall(keys.objections);
    pipeline
      .zrange(keys.outbox, '0', String(OUTBOX_READ - 1))
      .zcard(keys.outbox)
      .zcard(keys.late);
    for (const state of PAYOUT_STATES) pipeline.zcard(keys.state(state));
    for (const state of ENDED_STATES) pipeline.xlen(keys.ended(state));
    for (const state of WATCHED_STATES) pipeline.zrange(keys.state(state), '0', '0');
  });
  const [ledger = {}, sender = {}, journals = {}, objections = {}] = replies as Record<string, string>[];
  checkFormat(ledger['format']);
  const [outbox, outboxSize, latePayments, ...rest] = replies.slice(4) as [string[], number, number, ...unknown[]];
  const outboxUnreadable = outbox.filter((member) => 'unknownMember' in parseOutboxMember(member)).length;
  const counts = Object.fromEntries(PAYOUT_STATES.map((state) => [state, rest.shift() as number]));
  for (const state of ENDED_STATES) counts[state] = (counts[state] ?? 0) + (rest.shift() as number);
  const oldest = rest.map((members) => (members as string[])[0]);
  return {
    platformId: connection.platformId,
    ...(counts as Record<PayoutState, number>),
    paused: ledger['pausedReason'] !== undefined,
    pausedReason: ledger['pausedReason'] ?? null,
    pausedBy: ledger['pausedBy'] ?? null,
    pausedAt: ledger['pausedAt'] === undefined ? null : new Date(Number(ledger['pausedAt'])).toISOString(),
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
    oldestAgeMs: await readAges(connection, oldest),
  };
}

async function readAges(
  connection: LedgerConnection,
  oldest: readonly (string | undefined)[],
): Promise<AccountStats['oldestAgeMs']> {
  const entered = await readEntryTimes(
    connection,
    oldest.filter((payoutId) => payoutId !== undefined),
  );
  const now = connection.clock.wallNow();
  const ages = WATCHED_STATES.map((state, index) => {
    const at = entered.get(oldest[index] ?? '');
    return [state, at === undefined ? null : Math.max(0, now - at)];
  });
  return Object.fromEntries(ages) as AccountStats['oldestAgeMs'];
}

/** When each payout entered its present state, ms since 1970. */
async function readEntryTimes(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<Map<string, number>> {
  const each = async (fill: (pipeline: ChainableCommander, key: string, index: number) => void): Promise<unknown[]> =>
    pipelined(connection, (pipeline) => {
      payoutIds.forEach((payoutId, index) => {
        fill(pipeline, connection.keys.payout(payoutId), index);
      });
    });
  const records = await each((pipeline, key) => pipeline.hmget(key, 'n', 'state', 'queuedSince'));
  const facts = records as [string, string, string | null][];
  const entries = await each((pipeline, key, index) => pipeline.hget(key, `h${Number(facts[index]?.[0]) - 1}`));
  return new Map(
    payoutIds.map((payoutId, index) => {
      const [, state, queuedSince] = facts[index] ?? [];
      const { at } = parseHistoryEntry(String(entries[index]));
      return [payoutId, state === 'queued' && queuedSince ? Number(queuedSince) : at];
    }),
  );
}
