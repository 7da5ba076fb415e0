import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { readJournal } from '../../../src/journal/journal-reader.js';
import { WriteConfirmer } from '../../../src/ledger/confirm-write.js';
import { KnownReplicas } from '../../../src/ledger/known-replicas.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { until } from '../../support/until.js';
import { startMasterWithReplica } from '../../support/replicated-redis.js';
import { closeAfterTest } from '../../worker/support/close-after-test.js';
import { CliRig } from '../support/cli-rig.js';

let cli: CliRig;
beforeEach(async () => {
  cli = await new CliRig().open();
  cli.env['SEND_JOURNAL_DIR'] = join(cli.dir, 'journal');
});
afterEach(async () => cli.close());

const giveUp = (number: string) => ['redis-replicas', number, '--yes', '--reason', 'node-3 was removed', '--by', 'ann'];

async function knowsReplicas(count: number, names: string) {
  await cli.redis.hset(cli.keys.ledger, 'replicas', String(count), 'replicaNames', names);
}

/** On this host, in the folder of the command. */
async function journalKnows(count: number) {
  const dir = cli.env['SEND_JOURNAL_DIR'] ?? '';
  const journal = await FileSendJournal.open({ dir, platformId: cli.platformId });
  await journal.noteReplicas({ at: 1, count, names: ['10.0.0.2:6379'] });
  await journal.close();
  return async () => (await readJournal(dir, cli.platformId))?.knownReplicas;
}

it('lowers the number in Redis and in the journal of this host, names the others, and is an act', async () => {
  await knowsReplicas(2, '127.0.0.1:1 127.0.0.1:2');
  const readJournaled = await journalKnows(3);
  const other = { host: 'host-b', dir: '/data/journal', sends: 1, token: 't', replicas: 2, at: 1 };
  await cli.redis.hset(cli.keys.journals, 'j-other', JSON.stringify(other));
  await cli.refused(1, /only 0 of 1 replicas acknowledged it/, ...giveUp('1'));
  await journalKnows(3);
  const text = await cli.ok(...giveUp('0'));
  expect(text).toMatch(/waits for 0 replicas of Redis instead of 3: in Redis and in the send journal/);
  expect(text).toMatch(/The journal j-other \(host-b, \/data\/journal\) knows more: run this on that host, too/);
  expect([(await cli.ledger.readReplicas()).count, await readJournaled()]).toEqual([0, 0]);
  expect(await cli.ok('activity')).toMatch(/ann .*fewer replicas.*0 remain: node-3 was removed/);
  await cli.refused(4, /No more than 0 replicas known/, ...giveUp('0'));
  await knowsReplicas(1, '');
  expect(await cli.json(...giveUp('0'))).toMatchObject({ replicas: 0, before: 1 });
});

it('ends an absurd number that someone wrote to Redis', async () => {
  await knowsReplicas(999_999_999, '');
  expect(await cli.ok(...giveUp('0'))).toMatch(/waits for 0 replicas of Redis instead of 999999999/);
  expect((await cli.ledger.readReplicas()).count).toBe(0);
});

it('is refused while a replica that would be given up follows, or still replies', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  const gone = await startLocalRedis({});
  closeAfterTest({ close: async () => gone.stop() });
  cli.env['REDIS_URL'] = servers.master.url;
  await cli.refused(4, /127\.0\.0\.1:\d+ replies, so 0 replicas would not be all/, ...giveUp('0'));
  const redis = connectRedis(servers.master.url, 'commands');
  closeAfterTest({ close: async () => closeRedis(redis) });
  const ledger = new PayoutLedger(connectLedger(redis, cli.platformId));
  await ledger.connection.run('raise-replicas', { count: 2, names: `127.0.0.1:${gone.port}` });
  await cli.refused(4, new RegExp(`127\\.0\\.0\\.1:${gone.port} replies`), ...giveUp('1'));
  expect((await ledger.readReplicas()).count).toBe(2);
  await gone.stop();
  await until('it is gone', async () => (await cli.run(...giveUp('1'))).code === 0);
  expect((await ledger.readReplicas()).count).toBe(1);
});

it('is refused while the former master, which no replica ever was, still replies', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  const { master, replica } = servers;
  const former = connectRedis(master.url, 'commands');
  closeAfterTest({ close: async () => closeRedis(former) });
  const write = await new WriteConfirmer({ redis: former, known: new KnownReplicas(former) }).prepare(
    connectLedger(former, cli.platformId),
  );
  await write.confirm();
  cli.env['REDIS_URL'] = replica.url;
  const promoted = connectRedis(replica.url, 'commands');
  closeAfterTest({ close: async () => closeRedis(promoted) });
  await until('it has the ledger', async () => (await promoted.exists(`{payouts:${cli.platformId}}:ledger`)) === 1);
  if (promoted instanceof Redis) await promoted.replicaof('NO', 'ONE');
  await cli.refused(4, new RegExp(`${new URL(master.url).host} replies`), ...giveUp('0'));
});

it('refuses a number that is none, and one that the settings of this process exceed', async () => {
  await knowsReplicas(2, '');
  for (const number of ['-1', '1.5', 'one', '1000'])
    await cli.refused(2, /number: must be a whole number/, ...giveUp(number));
  cli.env['REDIS_REPLICAS'] = '2';
  await cli.refused(2, /REDIS_REPLICAS: asks for 2 here/, ...giveUp('1'));
  expect((await cli.ledger.readReplicas()).count).toBe(2);
});
