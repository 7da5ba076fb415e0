import { toIsoTime } from '../../base/format.js';
import { ask, type LedgerConnection } from '../ledger-connection.js';
import { pairsToRecord, type PayoutRecord } from '../payout-record.js';
import { searchEvents } from './state-events.js';

/** An act of an operator, or an automatic stop of the account. */
export interface Activity {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** The operator, or an approver's key; `worker` for the breaker's pause, a journal's id for its objection. */
  readonly by: string;
  readonly reason: string;
  readonly what: ActivityKind;
  /** Absent if it is about the account, or about several payouts. */
  readonly payoutId: string | undefined;
  /** The number of payouts; 0 if it is about the account. */
  readonly count: number;
  /** The key with which an operator signed it. */
  readonly key?: string;
  /** What a bulk command chose its payouts by, such as `batch june` or `file wrong.csv`. */
  readonly source?: string;
}

/** An act with its position in the record. */
export interface RecordedAct {
  readonly activity: Activity;
  /** Where a read continues that ended with this act. */
  readonly position: string;
  /** Its first position: an act of many payouts moves while its command runs. */
  readonly since: string;
}

export const ACTIVITIES = {
  paused: 'paused the account',
  resumed: 'resumed the account',
  pause_ended: 'ended one pause of several',
  objected: 'a send journal contradicts the ledger',
  balance_dropped: 'the balance fell without a payout that explains it',
  drop_accepted: 'accepted an unexplained drop of the balance',
  adopted: 'adopted the ledger',
  replicas_lowered: 'stated that fewer replicas of Redis remain',
  declared_new: 'stated that no process sends for the account',
  entry_removed: 'removed from the index of sending: Redis has no payout for it',
  recovered: 'recovered from a journal',
  made_unknown: 'made unknown by an adoption: it may have been sent',
  cancelled: 'cancelled',
  undone: 'undid the cancellation, under a new id',
  retried: 'queued again after a rejection',
  held: 'held',
  released: 'queued again after a hold',
  resolved_sent: 'resolved as sent',
  resolved_not_sent: 'resolved as not sent, queued again',
  written_off: 'written off',
  approved: 'approved with a signature',
  disapproved: 'rejected with a signature: it is not to be paid',
  unrejected: 'took a rejection back with a signature',
  commented: 'wrote a comment',
  changed: 'changed',
} as const;
type ActivityKind = keyof typeof ACTIVITIES;

/**
 * Reads about the last 10,000 acts, newest first. Older ones come from the event stream while it keeps them: a page
 * there may be short or empty and still have a next one.
 */
export async function readActivity(
  connection: LedgerConnection,
  limit: number,
  before?: string,
): Promise<{ activities: readonly Activity[]; next: string | undefined }> {
  const { acts, next } = await readRecordedActs(connection, limit, before);
  return { activities: acts.map(({ activity }) => activity), next };
}

/** As {@link readActivity}, with positions. */
export async function readRecordedActs(
  connection: LedgerConnection,
  limit: number,
  before?: string,
): Promise<{ acts: readonly RecordedAct[]; next: string | undefined }> {
  const { redis, keys } = connection;
  const olderThan = before?.startsWith(EVENT) ? before.slice(EVENT.length) : undefined;
  if (olderThan !== undefined) return readFromEvents(connection, olderThan, limit);
  const entries = await ask(
    redis.xrevrange(keys.activity, before === undefined ? '+' : `(${before}`, '-', 'COUNT', limit),
  );
  const acts = entries.map(([id, pairs]) => toRecordedAct(id, pairsToRecord(pairs)));
  if (entries.length === limit) return { acts, next: entries.at(-1)?.[0] };
  const start = await findStart(connection);
  const older = await readFromEvents(connection, start, limit - acts.length);
  return { acts: [...acts, ...older.acts], next: older.next };
}

export function toRecordedAct(id: string, fields: PayoutRecord): RecordedAct {
  return { activity: parseAct(fields), position: id, since: fields['since'] || id };
}

/** The position in the events after which all acts are in the record. */
async function findStart({ redis, keys }: LedgerConnection): Promise<string | undefined> {
  const [oldest] = await ask(redis.xrange(keys.activity, '-', '+', 'COUNT', 1));
  if (oldest === undefined) return undefined;
  const [id, pairs] = oldest;
  const since = pairsToRecord(pairs)['since'] || id;
  // An event follows its act in one script, so older events by the stream's clock have no recorded act.
  return `${since.split('-')[0] ?? ''}-0`;
}

const EVENT = 'event ';

/** Whether a position is one of the events, which keep no list of acts. */
export function isOfEvents(position: string): boolean {
  return position.startsWith(EVENT);
}

async function readFromEvents(
  connection: LedgerConnection,
  olderThan: string | undefined,
  limit: number,
): Promise<{ readonly acts: readonly RecordedAct[]; readonly next: string | undefined }> {
  const toAct = (id: string, fields: PayoutRecord): RecordedAct | undefined =>
    fields['by'] === '' ? undefined : toRecordedAct(`${EVENT}${id}`, fields);
  const { found, next } = await searchEvents(connection, olderThan, limit, toAct);
  return { acts: found, next: next === undefined ? undefined : `${EVENT}${next}` };
}

function parseAct(fields: PayoutRecord): Activity {
  const {
    type,
    payoutId = '',
    from = '',
    to = '',
    at = '',
    by = '',
    reason = '',
    count,
    key = '',
    source = '',
  } = fields;
  return {
    at: toIsoTime(Number(at)),
    by,
    reason,
    what:
      OF_ACCOUNT[type ?? ''] ??
      (type === COMMENT ? 'commented' : undefined) ??
      OF_APPROVAL[`${type ?? ''} ${to}`] ??
      OF_PAYOUT[`${from} ${to}`] ??
      (from === '' ? 'recovered' : 'changed'),
    payoutId: payoutId === '' ? undefined : payoutId,
    count: OF_PAYOUTS.includes(type ?? '') ? Number(count ?? 1) : 0,
    ...(key !== '' && { key }),
    ...(source !== '' && { source }),
  };
}

const COMMENT = 'comment';

/** The types of acts about payouts. */
const OF_PAYOUTS: readonly string[] = ['state', 'approval', COMMENT];

const OF_ACCOUNT: Readonly<Record<string, ActivityKind>> = {
  paused: 'paused',
  resumed: 'resumed',
  pause_ended: 'pause_ended',
  objection: 'objected',
  ledger_adopted: 'adopted',
  declared_new: 'declared_new',
  replicas_lowered: 'replicas_lowered',
  balance_dropped: 'balance_dropped',
  entry_removed: 'entry_removed',
  drop_accepted: 'drop_accepted',
};

const OF_APPROVAL: Readonly<Record<string, ActivityKind>> = {
  'approval approve': 'approved',
  'approval reject': 'disapproved',
  'approval unreject': 'unrejected',
};

const OF_PAYOUT: Readonly<Record<string, ActivityKind>> = {
  'queued cancelled': 'cancelled',
  'held cancelled': 'cancelled',
  'rejected cancelled': 'cancelled',
  ' queued': 'undone',
  'cancelled queued': 'undone',
  'rejected queued': 'retried',
  'queued held': 'held',
  'held held': 'held',
  'held queued': 'released',
  'unknown in_progress': 'resolved_sent',
  'unknown queued': 'resolved_not_sent',
  'unknown written_off': 'written_off',
  'queued written_off': 'written_off',
  'held written_off': 'written_off',
  'rejected written_off': 'written_off',
  'queued unknown': 'made_unknown',
  'held unknown': 'made_unknown',
  'rejected unknown': 'made_unknown',
  'cancelled unknown': 'made_unknown',
  'written_off unknown': 'made_unknown',
};
