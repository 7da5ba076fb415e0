import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { filePath, type ArchiveFolder } from '../../../src/archive/archive-files.js';
import { PayoutArchive } from '../../../src/archive/payout-archive.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { removeSome } from '../../../src/worker/retention.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { createWallClock } from '../../ledger/support/wall-clock.js';
import { useCli } from '../support/cli-rig.js';

const cli = useCli();
const DAY_MS = 24 * 60 * 60 * 1000;

let folder: ArchiveFolder;
let clock: ReturnType<typeof createWallClock>;
let ledger: PayoutLedger;
beforeEach(() => {
  folder = { dir: join(cli.dir, 'archive'), platformId: cli.platformId };
  cli.env['PAYOUT_ARCHIVE_DIR'] = folder.dir;
  clock = createWallClock();
  ledger = new PayoutLedger(connectLedger(cli.redis, cli.platformId, clock));
});

async function complete(payoutId: string, given: Partial<PayoutInput> = {}): Promise<void> {
  await ledger.enqueue([aPayout(payoutId, given)]);
  await ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `0x${payoutId}` });
  await ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: '0.5' });
}
async function cancel(payoutId: string, given: Partial<PayoutInput> = {}): Promise<void> {
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

it('payouts get shows all of a removed payout that it showed before', async () => {
  await complete('p-1', { reference: 'invoice 77', metadata: { order: [1, 'ä'] }, batch: 'october' });
  const before = await cli.json('get', 'p-1');
  expect(before).not.toHaveProperty('archivedIn');
  await retain();
  const archivedIn = filePath(folder, '2030-01-01', 1);
  expect(await cli.json('get', 'p-1')).toEqual({ ...before, archivedIn });
  expect(await cli.json('get', '--txhash', '0xp-1')).toEqual({ ...before, archivedIn });
  const stdout = await cli.ok('get', 'p-1');
  expect(stdout).toMatch(
    /^p-1 {2}completed: [^]*History \(UTC\)\n.* queued\n.* sending\n.* in_progress\n.* completed\n$/,
  );
  expect(stdout).toContain(archivedIn);
});

it('payouts get says where a removed payout may be', async () => {
  await cancel('p-1');
  await retain();
  await cli.refused(3, /^payouts: No payout has txhash 0x9, in Redis or in/, 'get', '--txhash', '0x9');
  await rm(folder.dir, { recursive: true });
  await cli.refused(3, /p-1 was cancelled.*not in the archive .*each host/, 'get', 'p-1');
  await cli.file('archive', 'a file in place of the folder');
  for (const args of ['get p-1', 'list --archived'])
    await cli.refused(2, /^payouts: PAYOUT_ARCHIVE_DIR: .* cannot be read: ENOTDIR/, ...args.split(' '));
  delete cli.env['PAYOUT_ARCHIVE_DIR'];
  const removed = /p-1 was cancelled, and PAYOUT_RETENTION_DAYS removed it.*same PAYOUT_ARCHIVE_DIR/;
  await cli.refused(3, removed, 'get', 'p-1');
  await cli.refused(2, /PAYOUT_ARCHIVE_DIR: is required with --archived/, 'list', '--archived');
});

it('payouts list --archived finds by each filter, the newest day first', async () => {
  const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  await complete('p-1', { batch: 'may', addressTo: 'TX1', reference: 'Invoice 1' });
  await cancel('p-2', { amount: '3.5', addressTo: `${BTC.toUpperCase()}:5` });
  clock.advance(DAY_MS);
  await complete('p-3', { batch: 'may', addressTo: 'TX1:77' });
  clock.advance(DAY_MS);
  await complete('p-4', { amount: '3.50' });
  // What Redis has is not listed.
  await new PayoutArchive(folder).keep([await ledger.require('p-4')]);
  expect(await cli.lines('list', '--archived')).toEqual([]);
  await retain();
  for (const [args, expected] of [
    ['', 'p-4 p-3 p-2 p-1'],
    ['--batch may', 'p-3 p-1'],
    ['--address TX1', 'p-3 p-1'],
    ['--address TX1:77', 'p-3'],
    // An earlier version took a tag behind what has none.
    [`--address ${BTC}:5`, 'p-2'],
    ['--amount 3.50 --state cancelled', 'p-2'],
    ['--reference invoice', 'p-1'],
    ['--since 2030-01-02 --until 2030-01-03', 'p-3'],
    ['--limit 3', 'p-4 p-3 p-2'],
  ] as const) {
    const found = await cli.lines('list', '--archived', ...args.split(' ').filter(Boolean));
    expect([args, found.map(({ payoutId }) => payoutId).join(' ')]).toEqual([args, expected]);
  }
  const csv = await cli.ok('list', '--archived', '--csv', '--batch', 'may');
  expect(csv).toMatch(/^payout_id,payment_id,amount,.*,state,txhash,fee,.*\np-3,.*\np-1,.*\n$/);
  expect(await cli.ok('list', '--archived', '--batch', 'may')).toMatch(/^PAYOUT.*\np-3 .*\np-1 /);
  for (const day of ['2030-01-01', '2030-01-03']) await writeFile(filePath(folder, day, 1), 'damaged');
  expect(await cli.json('list', '--archived', '--since', '2030-01-02', '--until', '2030-01-03')).toMatchObject({
    payoutId: 'p-3',
  });
  const { stderr } = await cli.run('list', '--archived', '--json');
  expect(stderr).toMatch(/2030-01-03.*bytes that make no sense/);
});
