import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '../../src/base/logger.js';
import type { ArchiveFolder } from '../../src/archive/archive-files.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { PayoutArchive } from '../../src/archive/payout-archive.js';
import { readArchive, type ArchivedPayout } from '../../src/archive/read-archive.js';
import type { Payout } from '../../src/ledger/payout.js';
import { FINAL_STATES, PAYOUT_STATES, type PayoutState } from '../../src/ledger/states.js';
import { applyRetention, removeSome } from '../../src/worker/retention.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { closeAfterTest, folderOfTest } from './support/close-after-test.js';

const DAY_MS = 24 * 60 * 60 * 1000;

let account: TestAccount;
beforeEach(() => {
  account = closeAfterTest(openTestAccount());
});

const statistics = {
  countRemoval: async (_: PayoutState, take: () => Promise<readonly unknown[]>) => (await take()).length,
};
const options = () => ({ connection: account.connection, retentionDays: 2, statistics });
const remove = async (archive?: PayoutArchive) => removeSome({ ...options(), ...(archive && { archive }) });

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `p-${index}`);
const keyOf = (payoutId: string) => account.connection.keys.payout(payoutId);

async function cancel(payoutIds: readonly string[], ageMs = 3 * DAY_MS) {
  await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  for (const payoutId of payoutIds) await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
  account.clock.advance(ageMs);
}

async function makeOneInEachState() {
  await account.ledger.enqueue(PAYOUT_STATES.map((state) => aPayout(state, { batch: 'b', reference: 'Ä "1"' })));
  const receipt = { key: 'w', at: '2030-01-01T00:00:00.000Z', signature: 's'.repeat(88) };
  const final = { fee: '0.1', receipt };
  const more: Partial<Record<PayoutState, object>> = {
    completed: final,
    failed: final,
    written_off: { by: 'ann', reason: 'why' },
  };
  const ways = ['sending', 'in_progress', 'unknown', 'in_progress completed', 'in_progress failed', 'rejected'];
  ways.push('rejected cancelled', 'unknown written_off');
  for (const way of ways.map((each) => each.split(' ') as PayoutState[])) {
    const payoutId = way.at(-1) ?? '';
    let from: PayoutState = 'queued';
    for (const to of new Set<PayoutState>(['sending', ...way])) {
      const gatewayId = to === 'in_progress' && { gatewayId: `hash-${payoutId}` };
      await account.ledger.change({ payoutId, from, to, ...gatewayId, ...more[to] });
      from = to;
    }
  }
}

it('retention takes old final ones, and leaves only id and state of each', async () => {
  await makeOneInEachState();
  account.clock.advance(2 * DAY_MS);
  expect((await remove()).payouts).toBe(0);
  account.clock.advance(1);
  expect((await remove()).payouts).toBe(FINAL_STATES.length);
  const found = await Promise.all(PAYOUT_STATES.map(async (state) => account.ledger.get(state)));
  const open = PAYOUT_STATES.filter((state) => !FINAL_STATES.includes(state));
  expect([found.flatMap((payout) => payout?.payoutId ?? []), (await remove()).payouts]).toEqual([open, 0]);

  expect(await account.ledger.findByGatewayId('hash-completed')).toBeUndefined();
  const { redis, connection } = account;
  const { keys } = connection;
  expect(await redis.zrange(keys.batch('b'), '0', '-1')).not.toContain('completed');
  expect(await redis.xlen(keys.state('completed'))).toBe(0);
  expect(await redis.keys(`${keys.prefix}:*completed*`)).toEqual([keys.state('completed')]);
  const buckets = await redis.keys(`${keys.prefix}:removed:*`);
  const ids = await Promise.all(buckets.map(async (bucket) => redis.hgetall(bucket)));
  expect(Object.assign({}, ...ids)).toEqual(Object.fromEntries(FINAL_STATES.map((state) => [state, state])));
});

it('retention never accepts a removed id again, even without the key `ledger`', async () => {
  await cancel(['p']);
  await remove();
  await account.redis.del(account.connection.keys.ledger);
  expect(await account.ledger.enqueue([aPayout('p')])).toMatchObject([{ kind: 'removed', state: 'cancelled' }]);
});

it('retention continues past a payout that cannot be removed', async () => {
  await cancel(numbered(150));
  await account.redis.hset(keyOf('p-0'), 'state', 'queued');
  const stop = new AbortController();
  const said: object[] = [];
  const info = (fields: object) => {
    stop.abort(said.push(fields));
  };
  await applyRetention({ ...options(), logger: { ...silentLogger, info } }, stop.signal);
  expect(said).toEqual([{ removed: 149 }]);
});

let folder: ArchiveFolder;
beforeEach(async () => {
  folder = { dir: join(await folderOfTest('retention'), 'archive'), platformId: account.platformId };
});

const onDamage = (message: string): never => {
  throw new Error(message);
};
async function readAll() {
  const found: ArchivedPayout[] = [];
  for await (const payouts of readArchive(folder, { onDamage })) found.push(...payouts);
  return found;
}
const readIds = async () => (await readAll()).map(({ payoutId }) => payoutId).join();

/** Something happens once, after payouts are on disk and before they are removed. */
function watchedArchive(after: (payouts: readonly Payout[]) => Promise<unknown>): PayoutArchive {
  const archive = new PayoutArchive(folder);
  const keep = archive.keep.bind(archive);
  archive.keep = async (payouts) => {
    archive.keep = keep;
    await keep(payouts);
    await after(payouts);
  };
  return archive;
}

it('an archive has on disk what it removes, whole, before it removes it', async () => {
  await makeOneInEachState();
  account.clock.advance(2 * DAY_MS + 1);
  const archivedIn = join(folder.dir, String(account.platformId), '2030-01-01.jsonl.gz');
  let seen = 0;
  const archive = watchedArchive(async (payouts) => {
    const archived = await readAll();
    for (const payout of payouts) {
      expect(archived).toContainEqual({ ...payout, archivedIn });
      expect(await account.ledger.get(payout.payoutId)).toBeDefined();
      seen += 1;
    }
  });
  expect(await remove(archive)).toMatchObject({ payouts: FINAL_STATES.length, archiveTrouble: undefined });
  expect(seen).toBeGreaterThan(0);
  for (const state of FINAL_STATES) expect(await account.ledger.get(state)).toBeUndefined();
});

it('an archive takes a payout by the time of its final state, however long ago it was accepted', async () => {
  await cancel(['old'], 0);
  await account.ledger.enqueue([aPayout('late')]);
  account.clock.advance(3 * DAY_MS);
  await account.ledger.change({ payoutId: 'late', from: 'queued', to: 'cancelled' });
  const archive = new PayoutArchive(folder);
  expect((await remove(archive)).payouts).toBe(1);
  expect(await readIds()).toBe('old');
  account.clock.advance(2 * DAY_MS + 1);
  expect((await remove(archive)).payouts).toBe(1);
  expect((await readAll()).map(({ payoutId }) => payoutId).sort()).toEqual(['late', 'old']);
});

it('an archive has each once where it ends between writing and removing, or one changed', async () => {
  await cancel(['a', 'b']);
  const archive = watchedArchive(async () => Promise.reject(new Error('Redis fails here')));
  expect((await remove(archive)).payouts).toBe(0);
  expect(await account.ledger.get('a')).toBeDefined();
  const changing = watchedArchive(async () => account.redis.hset(keyOf('a'), 'lateGatewayId', '0xlate'));
  expect((await remove(changing)).payouts).toBe(1);
  expect(await account.ledger.get('a')).toMatchObject({ lateGatewayId: '0xlate' });
  expect((await remove(changing)).payouts).toBe(1);
  expect(await findArchived(folder, { payoutId: 'a' }, { onDamage })).toMatchObject({ lateGatewayId: '0xlate' });
  expect(await readIds()).toBe('a,b');
});

it('an archive keeps one that lost a field, got another value, or cannot be read', async () => {
  await cancel(['a', 'b', 'altered']);
  await account.redis.hset(keyOf('altered'), 'metadata', '{');
  const archive = watchedArchive(async () =>
    Promise.all([account.redis.hdel(keyOf('a'), 'amount'), account.redis.hset(keyOf('b'), 'amount', '13')]),
  );
  const archiveTrouble: unknown = expect.stringMatching(/payout altered cannot be read/);
  expect(await remove(archive)).toMatchObject({ payouts: 0, archiveTrouble });
  expect(await account.redis.exists(keyOf('a'), keyOf('b'), keyOf('altered'))).toBe(3);
});

it('an archive that cannot be written keeps payouts in Redis, and continues by itself', async () => {
  await cancel(['a']);
  await writeFile(folder.dir, 'a file in place of the folder');
  const archive = new PayoutArchive(folder);
  const archiveTrouble: unknown = expect.stringMatching(/archive .* cannot be written: (ENOTDIR|EEXIST)/);
  const stop = new AbortController();
  const told: (string | undefined)[] = [];
  const logger = { ...silentLogger, warn: (_: object, message: string) => void told.push(message) };
  const onArchiveTrouble = (trouble: string | undefined) => void told.push(trouble);
  const running = applyRetention({ ...options(), archive, logger, onArchiveTrouble }, stop.signal);
  await until('the trouble is told', () => told.length > 1);
  stop.abort();
  await running;
  // From then on it is the task of another process.
  expect(told.at(-1)).toBeUndefined();
  expect(told.slice(0, -1)).toEqual(expect.arrayContaining([archiveTrouble, 'old payouts stay in Redis']));
  await rm(folder.dir);
  await mkdir(folder.dir);
  expect(await remove(archive)).toMatchObject({ payouts: 1, archiveTrouble: undefined });
  expect(await readIds()).toBe('a');
});

const LENGTH = 1_000;
const trim = async (keep: number) => Number(await account.connection.run('trim-events', { keep, limit: 1_000 }));
const count = async () => account.redis.xlen(account.connection.keys.events);

async function read(group: string, limit = 100) {
  const reply = await account.connection.run('read-group-events', {
    group,
    consumer: 'one',
    claimAfterMs: 1_000,
    limit,
  });
  return (reply as [string, number, [string, string[]][]])[2].map(([eventId]) => eventId);
}

const fill = async () => account.ledger.enqueue(numbered(LENGTH).map((payoutId) => aPayout(payoutId)));

it('trimming events keeps the newest ones, and about as many as it should', async () => {
  await fill();
  expect(await trim(LENGTH)).toBe(0);
  expect(await trim(250)).toBeGreaterThan(600);
  expect(await count()).toBeGreaterThanOrEqual(250);
  const [newest] = await account.redis.xrevrange(account.connection.keys.events, '+', '-', 'COUNT', 1);
  expect(newest?.[1]).toContain(`p-${LENGTH - 1}`);
});

it('trimming events never takes what a group has yet to read or to acknowledge', async () => {
  await fill();
  const { events } = account.connection.keys;
  for (let page = 0; page < 9; page += 1) await account.redis.xack(events, 'fast', ...(await read('fast')));
  const first = await read('slow');
  expect(await trim(10)).toBe(0);
  for (const eventId of first)
    await account.connection.run('ack-group-event', { group: 'slow', consumer: 'one', eventId });
  await read('slow');
  // Redis drops whole blocks of its stream only.
  const dropped = await trim(10);
  expect(dropped).toBeGreaterThan(50);
  expect(dropped).toBeLessThanOrEqual(100);
  const [oldest] = await account.redis.xrange(events, '-', '+', 'COUNT', 1);
  expect(oldest?.[1]).toContain(`p-${dropped}`);
});

it('trimming events keeps the next one of a group, wherever a block of the stream ends', async () => {
  await fill();
  const { events } = account.connection.keys;
  for (let next = 1; next <= 100; next += 1) {
    await account.redis.xack(events, 'slow', ...(await read('slow', 1)));
    await trim(10);
    const [oldest] = await account.redis.xrange(events, '-', '+', 'COUNT', 1);
    expect(Number(/p-(\d+)/.exec(String(oldest?.[1]))?.[1])).toBeLessThanOrEqual(next);
  }
});

// Last, with a limit of its own: mutation testing gives other tests as long as this one waits.
it('an archive that hangs holds nothing up', async () => {
  await cancel(['a']);
  const archiveTrouble: unknown = expect.stringMatching(/not on disk within 5000 ms/);
  const hanging = watchedArchive(async () => new Promise(() => undefined));
  expect(await remove(hanging)).toMatchObject({ payouts: 0, archiveTrouble });
}, 30_000);
