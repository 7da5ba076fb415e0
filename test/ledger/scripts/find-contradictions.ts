import { Cluster } from 'ioredis';
import type { RedisClient } from '../../../src/base/redis.js';
import { readActivity, type Activity } from '../../../src/ledger/reads/activity.js';
import { readEvents, type PayoutEvent } from '../../../src/producer/events/payout-events.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { readEach, readIndex } from '../../../src/ledger/payout-queries.js';
import { FINAL_STATES, PAYOUT_STATES } from '../../../src/ledger/states.js';
import type { TestAccount } from '../support/test-account.js';

type Account = Pick<TestAccount, 'connection' | 'redis'>;

/**
 * Compares everything that says the same thing twice: record, history, index, outbox, event and gatewayId.
 * @returns what does not agree
 */
export async function findContradictions({ connection, redis }: Account) {
  const { keys } = connection;
  const ledger = new PayoutLedger(connection);
  const found: string[] = [];
  const prefix = keys.payout('');
  const payoutIds = (await findKeys(redis, `${prefix}*`)).map((key) => key.slice(prefix.length));
  const { payouts } = await readEach(connection, payoutIds);
  const events = await readEvents(connection, { sinceMs: 0 }, 10_000);
  const indexes = new Map<string, string[]>();
  for (const state of PAYOUT_STATES) {
    const entries = await readIndex(connection, keys.stateIndex(state), { limit: 10_000 });
    indexes.set(
      state,
      entries.map(({ payoutId }) => payoutId),
    );
  }
  const outbox = await redis.zrange(keys.outbox, '0', '-1');
  const scheduled = await redis.zrange(keys.scheduled, '0', '-1');
  const dated = payouts.flatMap(({ payoutId, state, notBefore }) =>
    state === 'queued' && notBefore !== undefined ? [`${notBefore} ${payoutId}`] : [],
  );
  if (dated.sort().join() !== scheduled.join()) found.push(`dated are ${dated.join()}, not ${scheduled.join()}`);

  for (const { payoutId, state, gatewayId, lateGatewayId, history } of payouts) {
    const record = await redis.hgetall(keys.payout(payoutId));
    const inIndexes = [...indexes].filter(([, ids]) => ids.includes(payoutId)).map(([name]) => name);
    if (inIndexes.join() !== state) found.push(`${payoutId} is ${state}, but in the index of ${inIndexes.join()}`);
    if ((state === 'queued' || state === 'in_progress') && !outbox.includes(`${state} ${payoutId}`)) {
      found.push(`${payoutId} is ${state}, but not in the outbox`);
    }
    if (gatewayId !== undefined && (await ledger.findByGatewayId(gatewayId)) !== payoutId) {
      found.push(`${payoutId} has gatewayId ${gatewayId}, but is not found by it`);
    }
    const told = events.filter((event) => event.payoutId === payoutId);
    const expectTold = (what: string, events: readonly PayoutEvent[], times: number) => {
      if (events.length !== times) found.push(`${payoutId} ${what}, told ${events.length} times`);
    };
    for (const { to, at } of history) {
      const steps = told.filter((event) => event.type === 'state' && event.to === to && event.at === at);
      expectTold(`came into ${to} at ${at}`, steps, 1);
    }
    const ofType = (type: string) => told.filter((event) => event.type === type);
    const { held, batch } = record;
    expectTold('paid late', ofType('late_payment'), lateGatewayId === undefined ? 0 : 1);
    expectTold('was altered', ofType('tampering'), held?.includes('"isTampering":true') === true ? 1 : 0);
    const isLate = (await redis.zscore(keys.late, payoutId)) !== null;
    if (!isLate && lateGatewayId !== undefined) found.push(`${payoutId} is not in late`);
    if ((held !== undefined) !== (state === 'held')) found.push(`${payoutId} is ${state}, and says why it is held`);
    const isInBatch = batch === undefined || (await redis.zscore(keys.batch(batch), payoutId)) !== null;
    if (!isInBatch) found.push(`${payoutId} is not in its batch`);
  }
  for (const [state, ids] of indexes) {
    if (new Set(ids).size < ids.length) found.push(`the index of ${state} names a payout twice`);
    for (const id of ids)
      if (!payoutIds.includes(id)) found.push(`the index of ${state} names ${id}, which is not there`);
  }
  found.push(...(await findAccountContradictions({ connection, redis }, events)));
  return found;
}

function isActOf({ at, by, reason, payoutId, count }: Activity, event: PayoutEvent) {
  const isOfPayout = (payoutId === undefined && count > 0) || payoutId === event.payoutId;
  return isOfPayout && at === event.at && by === event.by && reason === (event.reason ?? '');
}

/** A cluster is asked master by master; only one that is connected knows its masters. */
async function findKeys(redis: RedisClient, pattern: string) {
  await redis.ping();
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return (await Promise.all(nodes.map(async (node) => node.keys(pattern)))).flat();
}

async function findAccountContradictions(
  { connection, redis }: Account,
  events: Awaited<ReturnType<typeof readEvents>>,
): Promise<string[]> {
  const { keys } = connection;
  const found: string[] = [];
  const ledger = await redis.hgetall(keys.ledger);
  const { activities } = await readActivity(connection, 10_000);
  if (ledger['pendingEvent'] !== undefined) found.push('an event of the account is still to be told');
  const count = (type: string) => events.filter((event) => event.type === type).length;
  if (count('paused') - count('resumed') !== (ledger['pausedReason'] === undefined ? 0 : 1)) {
    found.push(`paused ${count('paused')} times, resumed ${count('resumed')} times`);
  }
  if (count('objection') < (await redis.hlen(keys.objections))) found.push('an objection was not told');
  for (const event of events.filter(({ by }) => by !== undefined)) {
    const acts = activities.filter((act) => isActOf(act, event));
    // One for many payouts, and an adoption, are noted before they are carried out, and again when they are repeated.
    const mayRepeat =
      event.type === 'ledger_adopted' || acts.some(({ payoutId, count }) => payoutId === undefined && count > 0);
    if (acts.length === 0 || (acts.length > 1 && !mayRepeat)) {
      found.push(`${event.type} ${event.payoutId ?? ''} by ${event.by ?? ''}, noted ${acts.length} times`);
    }
  }
  for (const key of await findKeys(redis, `${keys.prefix}:removed:*`)) {
    for (const [payoutId, state] of Object.entries(await redis.hgetall(key))) {
      if (!FINAL_STATES.some((final) => final === state)) found.push(`${payoutId} was removed while ${state}`);
      if ((await redis.exists(keys.payout(payoutId))) === 1) found.push(`${payoutId} was removed and is there`);
    }
  }
  return found;
}
