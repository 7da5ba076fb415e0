import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { silentLogger as logger } from '../../../src/base/logger.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { followJournal, nameFolder } from '../../../src/worker/sharing/open-sharing.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { adoptJournal } from '../../proofs/signing.js';
import { until } from '../../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from '../support/close-after-test.js';
import { openSharedAccounts, type SharedAccounts } from '../support/shared-accounts.js';
import { ask, QUICK_ACCOUNT, readMetric } from '../support/watched-worker.js';

interface Watched {
  readonly worker: PayoutWorker;
  readonly url: string;
}

let shared: SharedAccounts;
const share = async () => void (shared = closeAfterTest(await openSharedAccounts(2)));

const dirOf = (folder: string) => join(shared.dir, folder);
const keyOf = (index: number, name: string) => `{payouts:${String(shared.platformIds[index])}}:${name}`;
const partsOf = ({ worker }: Watched) => worker.accounts.map(({ part }) => part).join();
const sends = ({ worker }: Watched, index: number) => worker.accounts[index]?.status.role === 'sender';

async function start(folder = 'one', redisUrl = shared.processOptions.redisUrl) {
  const { baseUrl, secretKey } = shared.processOptions;
  const accounts = shared.platformIds.map((platformId) => ({ platformId, baseUrl, secretKey, ...QUICK_ACCOUNT }));
  // Both processes have the host name of this machine: a second journal of one host waits for its adoption.
  await Promise.all(shared.platformIds.map(async (platformId) => adoptJournal(dirOf(folder), platformId)));
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  const access = { redisUrl, journalDir: dirOf(folder), observe: metrics.observe };
  const worker = await createPayoutWorker({ ...access, accounts });
  afterTest(async () => worker.stop());
  const health = { host: '127.0.0.1', port: 0, metrics, accounts: () => worker.accounts };
  return { worker, url: closeAfterTest(await startHealthServer(health)).url };
}

it('an account of a host with another journal is watched: a Redis that forgot is objected to', async () => {
  await share();
  await shared.enqueue(6);
  const first = await start('one');
  await until('it sends for both', () => sends(first, 0) && sends(first, 1));
  const second = await start('two');
  await until('each has one', () => partsOf(first).match(/send/g)?.length === 1);
  const moved = first.worker.accounts.findIndex(({ part }) => part !== 'send');
  await until('the other one sends for it', () => sends(second, moved));
  const account = first.worker.accounts[moved];
  expect(account?.part).toBe('watch');
  await until('both were sent for', () => shared.platformIds.every((id) => shared.sandbox.arrivals(id).length > 0));
  const journal = await readFile(join(dirOf('one'), `${String(account?.platformId)}.journal`), 'utf8');
  const { journalId } = JSON.parse(journal.split('\n')[0] ?? '') as { journalId: string };
  await shared.redis.del(keyOf(moved, 'ledger'), keyOf(moved, 'sender'));
  const objects = async () => (await shared.redis.hexists(keyOf(moved, 'objections'), journalId)) === 1;
  await until('the journal of the first host objects', objects);
  expect(account?.status).toMatchObject({ role: 'refused' });
});

it('a Redis user without rights for the registry serves all accounts', async () => {
  await share();
  const keys = shared.platformIds.map((platformId) => `~{payouts:${platformId}}*`);
  await shared.redis.call('ACL', 'SETUSER', 'limited', 'on', '>pw', ...keys, '+@all');
  const watched = await start('one', shared.processOptions.redisUrl.replace('redis://', 'redis://limited:pw@'));
  await until('it competes for all', () => partsOf(watched) === 'send,send');
});

it('of three processes with one folder of journals, the one that works for no account is ready, and leaves each to another', async () => {
  await share();
  const all = [await start(), await start(), await start()];
  const find = (parts: string) => all.find((each) => partsOf(each) === parts);
  const isShared = () =>
    ['rest,rest', 'send,rest', 'rest,send'].every(find) &&
    [0, 1].every((index) => all.some((one) => sends(one, index)));
  await until(() => `the accounts are shared out: ${all.map(partsOf).join(' ')}`, isShared);
  const [spare, first, second] = [find('rest,rest'), find('send,rest'), find('rest,send')];
  if (!spare || !first || !second) throw new Error('the accounts moved meanwhile');
  const scrape = async ({ url }: Watched) => (await fetch(`${url}/metrics`)).text();
  const readyz = async () => ask(`${spare.url}/readyz`);
  const told = async (process: Watched) => {
    const text = await scrape(process);
    return shared.platformIds.map((id) => text.includes(`payouts_in_state{platform_id="${id}"`));
  };
  const owns = async () => (await Promise.all([spare, first, second].map(told))).join();
  await until('each tells of its own', async () => (await owns()) === 'false,false,true,false,false,true');
  const rest = { role: 'standby', paused: null, pausedReason: null, stopped: [], warnings: [] };
  const accounts = shared.platformIds.map((platformId) => ({ platformId, ...rest }));
  expect(await readyz()).toEqual([200, { ready: true, redis: 'up', accounts }]);

  await shared.redis.config('SET', 'min-replicas-to-write', '1');
  expect(await readyz()).toMatchObject([503, { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }, {}] }]);
  expect(readMetric(await scrape(spare), 'payouts_redis_refuses_writes')).toBe(1);
});

it('a journal of others is read every few minutes, also after it could not be', async () => {
  const clock = new ManualClock();
  const end = new AbortController();
  let reads = 0;
  const reload = async () => Promise.reject(new Error(`EIO ${(reads += 1)}`));
  const following = followJournal({ reload }, { clock, logger }, end.signal);
  await clock.advance(11 * 60_000);
  expect(reads).toBe(3);
  end.abort();
  await following;
});

it('a folder has one name under any path, which no other has', async () => {
  const dir = await folderOfTest('folder');
  const [journals, one, other] = [join(dir, 'journals'), join(dir, 'one'), join(dir, 'other')];
  expect(await nameFolder(journals)).toBeUndefined();
  await mkdir(journals);
  const name = await nameFolder(journals);
  await symlink(journals, join(dir, 'link'));
  expect(await nameFolder(join(dir, 'link'))).toBe(name);
  await writeFile(join(journals, '1.journal'), 'a line');
  expect(await nameFolder(journals)).toBe(name);
  await rename(journals, join(dir, 'before'));
  await mkdir(journals);
  expect(await nameFolder(journals)).not.toBe(name);
  await writeFile(one, '11111111-2222-4333-8444-555555555555\n');
  await writeFile(other, '66666666-7777-4888-9999-000000000000\n');
  expect(await nameFolder(journals, one)).not.toBe(await nameFolder(journals, other));
});
