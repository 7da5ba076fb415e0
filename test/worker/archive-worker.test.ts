import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findArchived } from '../../src/archive/find-archived.js';
import { readArchive } from '../../src/archive/read-archive.js';
import { systemClock } from '../../src/base/clock.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const CRASH_AFTER_KEEP = new URL('support/crash-after-keep.mjs', import.meta.url).href;

let world: PayoutWorld;
let redis: RedisClient;
let ledger: PayoutLedger;
let environment: Record<string, string>;

beforeEach(async () => {
  world = await openWorld();
  redis = connectRedis(world.redisUrl, 'commands');
  const threeDaysAgo = { ...systemClock, wallNow: () => Date.now() - 3 * DAY_MS };
  ledger = new PayoutLedger(connectLedger(redis, world.platformId, threeDaysAgo));
  environment = { PAYOUT_RETENTION_DAYS: '1', PAYOUT_ARCHIVE_DIR: join(world.dir, 'archive') };
  await ledger.enqueue([aPayout('old-1'), aPayout('old-2')]);
  for (const payoutId of ['old-1', 'old-2']) await ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
});
afterEach(async () => {
  await world.close();
  await closeRedis(redis);
});

const folder = () => ({ dir: environment['PAYOUT_ARCHIVE_DIR'] ?? '', platformId: world.platformId });

async function readIds(): Promise<string[]> {
  const found: string[] = [];
  for await (const payouts of readArchive(folder(), { onDamage: () => undefined })) {
    found.push(...payouts.map(({ payoutId }) => payoutId));
  }
  return found.sort();
}

const untilRemoved = async (): Promise<void> =>
  until('the payouts are removed', async () => (await ledger.get('old-1')) === undefined);

describe('a worker with an archive', () => {
  it('that is killed between archive and removal loses nothing, and the next one shows nothing twice', async () => {
    const killed = world.startWorker({
      environment: { ...environment, NODE_OPTIONS: `--import ${CRASH_AFTER_KEEP}` },
    });
    expect(await killed.ended).toBe('SIGKILL');
    expect(await readIds()).toEqual(['old-1', 'old-2']);
    const payout = await ledger.require('old-1');
    world.startWorker({ environment });
    await untilRemoved();
    expect(await readIds()).toEqual(['old-1', 'old-2']);
    const found = await findArchived(folder(), { payoutId: 'old-1' }, { onDamage: () => undefined });
    expect(found).toEqual({ ...payout, archivedIn: found?.archivedIn });
    expect(found?.archivedIn).toContain(payout.updatedAt.slice(0, 10));
  });

  it('that cannot write it sends, removes nothing, and says why', async () => {
    await writeFile(join(world.dir, 'archive'), 'a file in place of the folder');
    const worker = world.startWorker({ environment });
    const [payoutId = ''] = await world.enqueue(1);
    await until('the payout is completed', async () => (await world.producer.get(payoutId))?.state === 'completed');
    await until('the log says so', () => worker.log().includes('old payouts stay in Redis'));
    const url = /"url":"([^"]*)"/.exec(worker.log())?.[1] ?? '';
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^payouts_archive_failed\{platform_id="\d+"\} 1$/m);
    expect(await (await fetch(`${url}/readyz`)).text()).toMatch(/Old payouts stay in Redis, and it grows: .*ENOTDIR/);
    expect(await ledger.get('old-1')).toMatchObject({ state: 'cancelled' });
    await worker.end();
    await rm(join(world.dir, 'archive'));
    world.startWorker({ environment });
    await untilRemoved();
    expect(await readIds()).toEqual(['old-1', 'old-2']);
  });
});
