import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { filePath, type ArchiveFolder } from '../../../src/archive/archive-files.js';
import { PayoutArchive } from '../../../src/archive/payout-archive.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { removeSome } from '../../../src/worker/retention.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { createWallClock } from '../../ledger/support/wall-clock.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';
import { runInProcess } from '../support/in-process.js';

const DAY_MS = 24 * 60 * 60 * 1000;

let account: AccountCli;
let folder: ArchiveFolder;
let clock: ReturnType<typeof createWallClock>;
let ledger: PayoutLedger;

beforeEach(async () => {
  account = openAccountCli();
  const { redis, platformId } = account.ledger.connection;
  folder = { dir: await mkdtemp(join(tmpdir(), 'archived-')), platformId };
  clock = createWallClock();
  ledger = new PayoutLedger(connectLedger(redis, platformId, clock));
});
afterEach(async () => {
  await rm(folder.dir, { recursive: true, force: true });
  await account.close();
});

const run = async (...args: string[]): Promise<CliResult> =>
  runInProcess(args, { ...account.env, PAYOUT_ARCHIVE_DIR: folder.dir });

async function complete(payoutId: string, given: Parameters<typeof aPayout>[1] = {}): Promise<void> {
  await ledger.enqueue([aPayout(payoutId, given)]);
  await ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `0x${payoutId}` });
  await ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: '0.5' });
}

async function cancel(payoutId: string, given: Parameters<typeof aPayout>[1] = {}): Promise<void> {
  await ledger.enqueue([aPayout(payoutId, given)]);
  await ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'ann', reason: 'twice by mistake' });
}

/** As the worker does, some days later. */
async function retain(): Promise<void> {
  clock.advance(30 * DAY_MS);
  const statistics = {
    countRemoval: async (_: unknown, take: () => Promise<readonly unknown[]>) => (await take()).length,
  };
  const archive = new PayoutArchive(folder);
  await removeSome({ connection: ledger.connection, retentionDays: 7, statistics, archive });
}

const idsOf = ({ stdout }: CliResult): string[] =>
  stdout.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { payoutId: string }).payoutId]));

describe('payouts get of a payout that was removed', () => {
  it('shows all that it showed before, and the file', async () => {
    await complete('p-1', { reference: 'invoice 77', metadata: { order: [1, 'ä'] }, batch: 'october' });
    const before = JSON.parse((await run('get', 'p-1', '--json')).stdout) as object;
    expect(before).not.toHaveProperty('archivedIn');
    await retain();
    const archivedIn = filePath(folder, '2030-01-01', 1);
    expect(JSON.parse((await run('get', 'p-1', '--json')).stdout)).toEqual({ ...before, archivedIn });
    expect(JSON.parse((await run('get', '--txhash', '0xp-1', '--json')).stdout)).toEqual({ ...before, archivedIn });
    const { code, stdout } = await runCli(['get', 'p-1'], { env: { ...account.env, PAYOUT_ARCHIVE_DIR: folder.dir } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^p-1 {2}completed: /);
    expect(stdout).toContain(archivedIn);
    expect(stdout).toMatch(/History \(UTC\)\n.* queued\n.* sending\n.* in_progress\n.* completed\n$/);
  });

  it('says where it may be without the folder, and with one that does not have it', async () => {
    await cancel('p-1');
    await retain();
    const without = await account.run('get', 'p-1');
    expect(without).toMatchObject({ code: 3, stdout: '' });
    expect(without.stderr).toMatch(/p-1 was cancelled, and PAYOUT_RETENTION_DAYS removed it.*same PAYOUT_ARCHIVE_DIR/);
    await rm(folder.dir, { recursive: true });
    const empty = await run('get', 'p-1');
    expect(empty.code).toBe(3);
    expect(empty.stderr).toMatch(/p-1 was cancelled.*not in the archive .*each host/);
  });

  it('finds nothing of one that never was', async () => {
    await cancel('p-1');
    await retain();
    expect(await run('get', 'p-9')).toMatchObject({ code: 3, stderr: 'payouts: Payout p-9 not found\n' });
    expect((await run('get', '--txhash', '0x9')).stderr).toMatch(/^payouts: No payout has txhash 0x9, in Redis or in/);
  });

  it('prefers what Redis has', async () => {
    await complete('p-1');
    const payout = await ledger.require('p-1');
    await new PayoutArchive(folder).keep([{ ...payout, amount: '999' }]);
    expect(JSON.parse((await run('get', 'p-1', '--json')).stdout)).toMatchObject({ amount: '12.5' });
  });

  it('names a file that cannot be read', async () => {
    await rm(folder.dir, { recursive: true });
    await writeFile(folder.dir, 'a file in place of the folder');
    for (const args of [
      ['get', 'p-1'],
      ['list', '--archived'],
    ]) {
      const { code, stderr } = await run(...args);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^payouts: PAYOUT_ARCHIVE_DIR: \/.* cannot be read: ENOTDIR/);
      expect(stderr).toContain(folder.dir);
    }
  });
});

describe('payouts list --archived', () => {
  beforeEach(async () => {
    await complete('p-1', { batch: 'may', addressTo: 'TX1', reference: 'Invoice 1' });
    await cancel('p-2', { amount: '3.5', addressTo: `${BTC.toUpperCase()}:5` });
    clock.advance(DAY_MS);
    await complete('p-3', { batch: 'may', addressTo: 'TX1:77' });
    clock.advance(DAY_MS);
    await complete('p-4', { amount: '3.50', addressTo: `bitcoincash:${CASH}` });
    await retain();
  });

  const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
  const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  const list = async (...args: string[]): Promise<string[]> =>
    idsOf(await run('list', '--archived', '--json', ...args));

  it('finds all, the newest day first, and by each filter', async () => {
    expect(await list()).toEqual(['p-4', 'p-3', 'p-2', 'p-1']);
    expect(await list('--state', 'completed')).toEqual(['p-4', 'p-3', 'p-1']);
    expect(await list('--batch', 'may')).toEqual(['p-3', 'p-1']);
    expect(await list('--address', 'TX1')).toEqual(['p-3', 'p-1']);
    expect(await list('--address', 'TX1:77')).toEqual(['p-3']);
    expect(await list('--address', CASH.toUpperCase())).toEqual(['p-4']);
    // An earlier version took a tag behind what has none.
    expect(await list('--address', `${BTC}:5`)).toEqual(['p-2']);
    expect(await list('--amount', '3.50', '--state', 'cancelled')).toEqual(['p-2']);
    expect(await list('--reference', 'invoice')).toEqual(['p-1']);
    expect(await list('--state', 'failed')).toEqual([]);
    expect(await list('--since', '2030-01-02', '--until', '2030-01-03')).toEqual(['p-3']);
    expect(await list('--since', '2030-01-01T00:00:00Z', '--until', '2030-01-01T00:00:01Z')).toEqual(['p-2', 'p-1']);
  });

  it('opens no file outside --since and --until', async () => {
    for (const day of ['2030-01-01', '2030-01-03']) await writeFile(filePath(folder, day, 1), 'damaged');
    const result = await run('list', '--archived', '--json', '--since', '2030-01-02', '--until', '2030-01-03');
    expect(idsOf(result)).toEqual(['p-3']);
    expect(result.stderr).toBe('');
    expect((await run('list', '--archived', '--json')).stderr).toMatch(/2030-01-03.*bytes that make no sense/);
  });

  it('stops at the limit, and says when more follow', async () => {
    const some = await run('list', '--archived', '--json', '--limit', '3');
    expect(idsOf(some)).toEqual(['p-4', 'p-3', 'p-2']);
    expect(some.stderr).toMatch(/More payouts follow/);
    expect((await run('list', '--archived', '--json', '--limit', '4')).stderr).toBe('');
  });

  it('writes CSV and a table as for payouts in Redis', async () => {
    const csv = (await run('list', '--archived', '--csv', '--batch', 'may')).stdout.trim().split('\n');
    expect(csv[0]).toMatch(/^payout_id,payment_id,amount,.*,state,txhash,fee,/);
    expect(csv.slice(1).map((line) => line.split(',')[0])).toEqual(['p-3', 'p-1']);
    expect((await run('list', '--archived', '--batch', 'may')).stdout).toMatch(/^PAYOUT.*\np-3 .*\np-1 /);
  });

  it('leaves out what is in Redis (still)', async () => {
    await complete('p-5');
    await new PayoutArchive(folder).keep([await ledger.require('p-5')]);
    expect((await readdir(join(folder.dir, String(folder.platformId)))).length).toBeGreaterThan(6);
    expect(await list()).toEqual(['p-4', 'p-3', 'p-2', 'p-1']);
    await retain();
    expect(await list()).toEqual(['p-5', 'p-4', 'p-3', 'p-2', 'p-1']);
  });

  it('needs the folder', async () => {
    const { code, stderr } = await account.run('list', '--archived');
    expect(code).toBe(2);
    expect(stderr).toMatch(/PAYOUT_ARCHIVE_DIR: is required with --archived/);
  });
});
