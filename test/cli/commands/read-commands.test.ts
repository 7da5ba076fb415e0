import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { testRedisUrl } from '../../support/account.js';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { textWith, useCli } from '../support/cli-rig.js';
import { type ArchiveFolder, filePath } from '../../../src/archive/archive-files.js';
import { PayoutArchive } from '../../../src/archive/payout-archive.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { type Currency, writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { removeSome } from '../../../src/worker/retention.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { createWallClock } from '../../ledger/support/wall-clock.js';

/** `payouts get`, `list`, `stats`, `status` and `events`. */

const cli = useCli();
const pause = async (): Promise<unknown> => cli.ok('pause', '--reason', 'maintenance', '--by', 'ann');

it('payouts get shows a payout in full with its history, in both forms', async () => {
  await cli.enqueue('p-1', '--reference', 'invoice 77');
  await cli.force('p-1', 'unknown');
  await cli.ledger.change({ payoutId: 'p-1', from: 'unknown', to: 'in_progress', gatewayId: '0xabc', by: 'ann' });
  expect(await cli.ok('get', 'p-1')).toMatch(
    /^p-1 {2}in_progress: [^]* amount +12\.5 \(payment_id 6\)\n[^]* reference +invoice 77\n[^]*History \(UTC\)\n.* unknown +for \d+ s\n.* in_progress {2}for \d+ s {2}by ann\n$/,
  );
  const shown = await cli.json('get', 'p-1');
  expect(shown).toMatchObject({
    ...{ payoutId: 'p-1', state: 'in_progress', paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', gatewayId: '0xabc' },
    ...{ attempt: 0, createdAt: textWith(/^\d{4}-/), updatedAt: textWith(/Z$/) },
    history: [{ to: 'unknown' }, { from: 'unknown', to: 'in_progress', by: 'ann' }],
  });
  expect(await cli.json('get', '--gateway-id', '0xabc')).toEqual(shown);
});

it("payouts get says which network was compared, that none was, and the fee of the gateway's list", async () => {
  const tron = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
  await cli.enqueue('p-1', '--address-to', tron);
  expect(await cli.ok('get', 'p-1')).toMatch(/ network +not checked: the gateway's list of currencies is not known\n/);
  const currencies = [{ paymentId: 6, name: 'USDT', usdRate: '1', fee: '1', chain: 'Tron' as const }];
  const write = async (given: readonly Currency[]) =>
    writeGatewayFacts(cli.ledger.connection, { currencies: given, currenciesAt: Date.now(), isWhole: true });
  await write(currencies);
  expect(await cli.ok('get', 'p-1')).toMatch(
    / network +Tron, as its address\n[^]* fee +1 USDT in the gateway's list\n/,
  );
  await write([{ paymentId: 6, name: 'USDT', usdRate: '1' }]);
  expect(await cli.ok('get', 'p-1')).toMatch(/ network +not checked: the network of USDT is not known\n/);
  await write([{ paymentId: 6, name: 'BTC', usdRate: '1', chain: 'Bitcoin' }]);
  expect(await cli.ok('get', 'p-1')).toMatch(
    / network +wrong: the address is an address of Tron, but the gateway pays BTC on/,
  );
});

const ids = async (...args: string[]) => (await cli.lines('list', ...args)).map(({ payoutId }) => payoutId).join(' ');

it('payouts list lists a state with short addresses and named currencies', async () => {
  const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
  for (const payoutId of ['p-1', 'p-2']) await cli.enqueue(payoutId, '--address-to', address);
  const stdout = await cli.ok('list', '--state', 'queued');
  expect(stdout).toMatch(/^PAYOUT +STATE +AMOUNT.*\np-1 +queued +12\.5 \(payment_id 6\) {2}TXYZop…VkAeBf .*\np-2 /);
  await cli.listCurrency();
  expect(await cli.ok('list', '--state', 'queued', '--limit', '2')).toMatch(/\np-1 +queued +12\.5 USDT \(TRC-20\) /);
  const one = await cli.run('list', '--state', 'queued', '--limit', '1', '--json');
  expect(JSON.parse(one.stdout)).toMatchObject({ addressTo: address });
  expect(one.stderr).toMatch(/More payouts follow/);
});

it('payouts list goes through all pages of a batch', async () => {
  const payout = { paymentId: 6, amount: '1', addressTo: 'T', batch: 'many' };
  const all = Array.from({ length: 1_203 }, (_, n) => `p-${n}`);
  await cli.ledger.enqueue(all.map((payoutId) => ({ ...payout, payoutId })));
  expect(await ids('--batch', 'many', '--all')).toBe(all.join(' '));
  const counts = { batch: 'many', total: 1_203, queued: 1_203, completed: 0 };
  expect(await cli.json('stats', '--batch', 'many')).toMatchObject(counts);
  await cli.refused(3, '', 'stats', '--batch', 'none');
});

it('payouts list finds by address, reference, amount and time, the newest first', async () => {
  await cli.enqueue('p-1', '--reference', 'Invoice 77');
  await cli.enqueue('p-2', '--amount', '3500.50', '--batch', 'May');
  await cli.enqueue('p-3', '--address-to', 'TOTHER', '--batch', 'May');
  for (const [args, expected] of [
    ['--address TXYZ9', 'p-2 p-1'],
    ['--reference invoice', 'p-1'],
    ['--amount 3,500.5', 'p-2'],
    ['--since 2020-01-01', 'p-3 p-2 p-1'],
    ['--state queued --batch May', 'p-3 p-2'],
  ] as const) {
    expect([args, await ids(...args.split(' '))]).toEqual([args, expected]);
  }
});

it('payouts list ends with 2 for a choice that is none', async () => {
  for (const [args, message] of [
    [[], /^payouts: give --state, --batch, --address, --reference, --amount, --since, --until or --archived\n$/],
    [['--state', 'gone'], /Allowed choices are queued, held, sending/],
    [['--state', 'queued', '--limit', '0'], /--limit: must be at least 1/],
  ] as const)
    await cli.refused(2, message, 'list', ...args);
});

it('payouts stats shows counts, pause and sender, in both forms', async () => {
  await cli.enqueue('p-1');
  expect(await cli.json('stats')).toMatchObject({
    ...{ queued: 1, completed: 0, paused: false, pausedReason: null, sender: null },
  });
  await pause();
  const stdout = await cli.ok('stats');
  expect(stdout).toMatch(/^Account \d+: Paused\npaused: maintenance\. .*\n {2}payouts resume --account \d+ --reason W/);
  expect(stdout).toMatch(/paused by +ann, .* UTC, for \d+ s\n +sender +none: no process holds the lease\n/);
  expect(stdout).toMatch(/ {3}queued +1 {2}oldest for \d+ s/);
});

it('payouts stats shows rate, expected end beside a sender whose heartbeat rises', async () => {
  await cli.enqueue('p-1');
  const { redis, keys } = cli;
  const now = Date.now();
  const minute = Math.floor(now / 60_000);
  const sum = (amount: string, count = 1) => ({ paymentId: 6, count, amount });
  await redis.hset(keys.statistics, {
    [`hour:${Math.floor(minute / 60)}`]: JSON.stringify([[minute - 1, 40, 1_010, 2_000, 9, 0, 0, 1]]),
    sums: JSON.stringify({ queued: [sum('100.5')] }),
    today: JSON.stringify({ day: Math.floor(now / 86_400_000), sent: [sum('12.25', 3)] }),
    ...{ lastSendAt: String(now - 5_000), pace: '[1100,1100,3600000,1100]', position: `"${now}-0"` },
  });
  await redis.hset(keys.gateway, {
    currencies: JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }], currenciesAt: now }),
    balance: JSON.stringify({ balance: [{ paymentId: 6, amount: '99' }], balanceAt: now - 65_000 }),
    failure: JSON.stringify({ failure: '/balance: no route', failureAt: now }),
  });
  await redis.hset(keys.sender, { owner: 'host:1:abc', epoch: 4, beat: 17, released: 0 });
  const silent = await cli.ok('stats');
  for (const line of [
    /: Sender without heartbeat\nNo heartbeat for \d+ s: it has ended or hangs.*\n[\s\S]*sender +host:1:abc, no heartbeat\n/,
    /backlog +1 queued, no estimate of its end: Sender without heartbeat/,
    /balance +99 USDT \(TRC-20\), 100\.5 USDT \(TRC-20\) queued: NOT ENOUGH \(1 min ago\)/,
    /query failed \d+ s ago: \/balance: no route/,
    /By currency \(events up to \S+ [\d:]{8} UTC\)\n +queued +1 +100\.5 USDT \(TRC-20\)/,
    /Today \(UTC\)\n +sent +3 +12\.25 USDT \(TRC-20\)/,
  ])
    expect(silent).toMatch(line);
  const beating = setInterval(() => void redis.hincrby(keys.sender, 'beat', 1), 300);
  const beside = await cli.ok('stats');
  clearInterval(beating);
  expect(beside).toMatch(/sender +host:1:abc, alive\n[^]*backlog +1 queued, sent in about \d+ s \(.* UTC\)\n/);
  const balance = [{ currency: 'USDT (TRC-20)', balance: '99', queued: '100.5', isEnough: false }];
  expect(await cli.json('stats')).toMatchObject({ balance, today: { sent: [{ amount: '12.25' }], failed: [] } });
});

it('payouts status names Redis and gateway, and says of an empty ledger that this host has a journal', async () => {
  const { host } = new URL(testRedisUrl());
  expect(await cli.json('status')).toMatchObject({ redis: host, gateway: null });
  const before = await cli.run('status');
  expect(before.stdout).toMatch(RegExp(`Redis +${host}\\n +gateway +none yet`));
  cli.env['SEND_JOURNAL_DIR'] = cli.dir;
  expect((await cli.run('status')).stdout).toBe(before.stdout);
  const journal = await FileSendJournal.open({ dir: cli.dir, platformId: cli.platformId });
  await journal.bind({ ledgerId: 'of-another-redis', epoch: 1, sends: 3, token: 't' });
  await journal.close();
  const elsewhere = `The ledger in Redis ${host} has no send of the account, but the journal in`;
  const { code, stdout } = await cli.run('status');
  expect([code, stdout.replace(/\s+/g, ' ')]).toEqual([1, expect.stringContaining(elsewhere)]);
});

it('payouts status says first what stops the account', async () => {
  await cli.enqueue('p-1');
  const { code, stdout } = await cli.run('status');
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Account \d+: No worker\n.*nothing is sent.*\n {2}payouts worker\n/);
  expect(stdout).toMatch(/waiting +1 due now, 0 being sent, 0 held/);
  expect(await cli.json('status')).toMatchObject({
    ...{ tone: 'bad', headline: 'No worker', advice: [], command: 'payouts worker' },
    ledger: { sender: null, lastSendAgoMs: null, due: 1, sending: 0, held: 0 },
  });
  await pause();
  const paused = /^Account \d+: Paused\npaused: maintenance\. .*\n {2}payouts resume --account \d+ --reason WHY\n/;
  expect(await cli.run('status')).toMatchObject({ code: 1, stdout: textWith(paused) });
});

it('payouts events shows what happened, from the beginning', async () => {
  await cli.enqueue('p-1');
  await pause();
  await cli.ok('cancel', 'p-1', '--by', 'ann', '--reason', 'paid by hand');
  expect(await cli.ok('events')).toMatch(
    / p-1 {2}queued\n.* account {2}paused {2}by ann: maintenance\n.* p-1 {2}queued → cancelled {2}by ann: paid by hand\n$/,
  );
  const events = await cli.lines<{ eventId: string }>('events');
  expect(events).toMatchObject([
    { type: 'state', payoutId: 'p-1', to: 'queued' },
    { type: 'paused', by: 'ann', reason: 'maintenance' },
    { type: 'state', payoutId: 'p-1', from: 'queued', to: 'cancelled' },
  ]);
  expect(await cli.lines('events', '--since', events[1]?.eventId ?? '')).toEqual([events[2]]);
  await cli.refused(2, '--since', 'events', '--since', 'yesterday');
  const following = cli.start(['events', '--follow', '--since', '2020-01-01T00:00:00Z']);
  await following.waitForOutput(/p-1/);
  await cli.enqueue('p-2');
  await following.waitForOutput(/p-2 {2}queued/);
  following.kill('SIGTERM');
  expect(await following.result).toMatchObject({ code: 0, signal: null, stderr: '' });
});

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

async function complete(payoutId: string, given: Partial<PayoutInput> = {}) {
  await ledger.enqueue([aPayout(payoutId, given)]);
  await ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await ledger.change({ payoutId, from: 'sending', to: 'in_progress', gatewayId: `0x${payoutId}` });
  await ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: '0.5' });
}
async function cancel(payoutId: string, given: Partial<PayoutInput> = {}) {
  await ledger.enqueue([aPayout(payoutId, given)]);
  await ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'ann', reason: 'twice by mistake' });
}

/** As the worker does, some days later. */
async function retain() {
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
  expect(await cli.json('get', '--gateway-id', '0xp-1')).toEqual({ ...before, archivedIn });
  expect(await cli.ok('get', 'p-1')).toContain(archivedIn);
});

it('payouts get says where a removed payout may be', async () => {
  await cancel('p-1');
  await retain();
  await cli.refused(3, /^payouts: No payout has the payment 0x9, in Redis or in/, 'get', '--gateway-id', '0x9');
  await rm(folder.dir, { recursive: true });
  await cli.refused(3, /p-1 was cancelled.*not in the archive .*each host/, 'get', 'p-1');
  await cli.file('archive', 'a file in place of the folder');
  await cli.refused(2, /^payouts: PAYOUT_ARCHIVE_DIR: .* cannot be read: ENOTDIR/, 'get', 'p-1');
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
  expect(await ids('--archived')).toBe('');
  await retain();
  for (const [args, expected] of [
    ['', 'p-4 p-3 p-2 p-1'],
    ['--address TX1', 'p-3 p-1'],
    // An earlier version took a tag behind what has none.
    [`--address ${BTC}:5`, 'p-2'],
    ['--amount 3.50 --state cancelled', 'p-2'],
    ['--reference invoice', 'p-1'],
    ['--since 2030-01-02 --until 2030-01-03', 'p-3'],
  ] as const) {
    expect([args, await ids('--archived', ...args.split(' ').filter(Boolean))]).toEqual([args, expected]);
  }
  expect(await cli.ok('list', '--archived', '--batch', 'may')).toMatch(/^PAYOUT.*\np-3 .*\np-1 /);
  await writeFile(filePath(folder, '2030-01-03', 1), 'damaged');
  const { stderr } = await cli.run('list', '--archived', '--limit', '1');
  expect(stderr).toMatch(/More payouts follow/);
  expect(stderr).toMatch(/2030-01-03.*bytes that make no sense/);
});
