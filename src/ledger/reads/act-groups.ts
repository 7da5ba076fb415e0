import { ask, type LedgerConnection } from '../ledger-connection.js';
import { pairsToRecord, type PayoutRecord } from '../payout-record.js';
import { type Activity, isOfEvents, readRecordedActs, type RecordedAct, toRecordedAct } from './activity.js';
import { timeOfEvent } from './state-events.js';

/**
 * One line for one act. A command that signs 500 approvals records each; its operator did one thing, with a number and
 * a list. Acts about payouts of the same operator, kind, reason, key and source are one, if each came within a minute of
 * the one before.
 */
export interface ActGroup extends Activity {
  /** Of its first act: names the group, also while it grows. Undefined if its payouts cannot be listed any more. */
  readonly id: string | undefined;
}

const APART_MS = 60_000;

/** About all acts that are kept. */
const READ_AT_MOST = 10_000;
const READ_AT_ONCE = 500;

interface OpenGroup {
  readonly latest: Activity;
  earliestAt: number;
  count: number;
  isOne: boolean;
  id: string;
}

/**
 * The newest first.
 * @param before - `next` of the page before
 * @returns `next` is undefined at the end; a page may be short, or empty, and still have a next one
 */
export async function readActGroups(
  connection: LedgerConnection,
  limit: number,
  before?: string,
): Promise<{ readonly groups: readonly ActGroup[]; readonly next: string | undefined }> {
  const groups: OpenGroup[] = [];
  let place = before;
  for (let read = 0; read < READ_AT_MOST; read += READ_AT_ONCE) {
    const { acts, next } = await readRecordedActs(connection, READ_AT_ONCE, place);
    for (const { activity, position, since } of acts) {
      const at = Date.parse(activity.at);
      const group = groups.find((each) => isSameAct(each.latest, activity) && isSoon(each.earliestAt, at));
      if (group === undefined && groups.length === limit) return { groups: groups.map(toGroup), next: place };
      if (group === undefined) {
        groups.push({ latest: activity, earliestAt: at, count: activity.count, isOne: true, id: since });
      } else {
        Object.assign(group, { earliestAt: at, count: group.count + activity.count, isOne: false, id: since });
      }
      place = position;
    }
    if (next === undefined) return { groups: groups.map(toGroup), next: undefined };
    place = next;
    if (acts.length < READ_AT_ONCE) break;
  }
  return { groups: groups.map(toGroup), next: place };
}

function toGroup({ latest, count, isOne, id }: OpenGroup): ActGroup {
  const listed = isOfEvents(id) ? undefined : id;
  return { ...latest, count, id: listed, payoutId: isOne ? latest.payoutId : undefined };
}

function isSameAct(one: Activity, other: Activity): boolean {
  const { what, by, reason, key, source, count } = other;
  const isAlike = one.what === what && one.by === by && one.reason === reason && one.key === key;
  return isAlike && one.source === source && one.count > 0 && count > 0;
}

function isSoon(one: number, other: number): boolean {
  return Math.abs(one - other) < APART_MS;
}

/** The event of a change follows its act in one script. */
const SCRIPT_MS = 1_000;

/**
 * The payouts of an act.
 * @param id - see {@link ActGroup}
 * @param limit - of the payoutIds, the first ones
 * @returns undefined if no act is recorded with it any more; `isWhole` says whether these are all
 */
export async function readActPayouts(
  connection: LedgerConnection,
  id: string,
  limit: number,
): Promise<{ readonly act: Activity; readonly payoutIds: readonly string[]; readonly isWhole: boolean } | undefined> {
  const payoutIds = new Set<string>();
  let [first, latestAt]: [Activity | undefined, number] = [undefined, 0];
  for await (const [act, fields] of readForward(connection, id)) {
    const { activity, since } = act;
    const isOwn = first === undefined ? since === id : isSameAct(first, activity);
    if (!isOwn) {
      if (Date.parse(activity.at) - latestAt > APART_MS && first !== undefined) break;
      continue;
    }
    if (first !== undefined && !isSoon(latestAt, Date.parse(activity.at))) break;
    first ??= activity;
    latestAt = Date.parse(activity.at);
    if (activity.payoutId !== undefined) payoutIds.add(activity.payoutId);
    else for (const payoutId of await readChanged(connection, act, fields, limit)) payoutIds.add(payoutId);
    if (payoutIds.size > limit) break;
  }
  if (first === undefined) return undefined;
  return { act: first, payoutIds: [...payoutIds].slice(0, limit), isWhole: payoutIds.size <= limit };
}

async function* readForward(
  { redis, keys }: LedgerConnection,
  id: string,
): AsyncGenerator<readonly [RecordedAct, PayoutRecord]> {
  let start = id;
  for (let read = 0; read < READ_AT_MOST; read += READ_AT_ONCE) {
    const entries = await ask(redis.xrange(keys.activity, start, '+', 'COUNT', READ_AT_ONCE));
    for (const [position, pairs] of entries) {
      const fields = pairsToRecord(pairs);
      yield [toRecordedAct(position, fields), fields];
    }
    if (entries.length < READ_AT_ONCE) return;
    start = `(${entries.at(-1)?.[0] ?? ''}`;
  }
}

/** An act of many payouts has their number alone: their events name them, while the stream keeps these. */
async function readChanged(
  { redis, keys }: LedgerConnection,
  { position, since, activity: { count } }: RecordedAct,
  act: PayoutRecord,
  limit: number,
): Promise<readonly string[]> {
  const end = String(timeOfEvent(position) + SCRIPT_MS);
  const found: string[] = [];
  let start = since;
  // The next act of the same operator may have come within that second.
  const most = Math.min(count, limit + 1);
  for (let read = 0; read < READ_AT_MOST && found.length < most; read += READ_AT_ONCE) {
    const entries = await ask(redis.xrange(keys.events, start, end, 'COUNT', READ_AT_ONCE));
    for (const [, pairs] of entries) {
      const event = pairsToRecord(pairs);
      const isOwn = COMPARED.every((field) => event[field] === act[field]);
      if (isOwn && event['payoutId'] !== undefined) found.push(event['payoutId']);
    }
    if (entries.length < READ_AT_ONCE) break;
    start = `(${entries.at(-1)?.[0] ?? ''}`;
  }
  return found.slice(0, most);
}

const COMPARED = ['type', 'from', 'by', 'reason'] as const;
