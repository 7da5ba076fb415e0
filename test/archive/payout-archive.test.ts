import { spawn } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type ArchiveFolder, filePath, folderPath, indexPath } from '../../src/archive/archive-files.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { ArchiveTurns, PayoutArchive } from '../../src/archive/payout-archive.js';
import { readArchive, type ReadOptions } from '../../src/archive/read-archive.js';
import type { Payout } from '../../src/ledger/payout.js';
import { names } from '../ledger/support/use-account.js';

const [MONDAY, TUESDAY, WEDNESDAY] = ['2030-01-07', '2030-01-08', '2030-01-09'] as const;

let folder: ArchiveFolder;
let archive: PayoutArchive;
let damage: string[];

beforeEach(async () => {
  folder = { dir: join(await mkdtemp(join(tmpdir(), 'archive-')), 'deep', 'archive'), platformId: 4242 };
  archive = new PayoutArchive(folder);
  damage = [];
});
afterEach(async () => rm(join(folder.dir, '..', '..'), { recursive: true, force: true }));

const onDamage = (message: string) => void damage.push(message);
function on(day: string, payoutId: string, given: Partial<Payout> = {}): Payout {
  const at = `${day}T10:00:00.000Z`;
  return {
    ...{
      payoutId,
      state: 'completed',
      final: true,
      paymentId: 6,
      amount: '12.5',
      addressTo: 'TXYZ9',
      attempt: 1,
      requeueCount: 0,
    },
    ...{ gatewayId: `0x${payoutId}`, createdAt: at, updatedAt: at, history: [{ at, to: 'queued' }], ...given },
  };
}

async function read(options: Partial<ReadOptions> = {}) {
  const payoutIds: string[] = [];
  for await (const payouts of readArchive(folder, { onDamage, ...options })) {
    payoutIds.push(...payouts.map(({ payoutId }) => payoutId));
  }
  return payoutIds;
}

const find = async (payoutId: string) => findArchived(folder, { payoutId }, { onDamage });

const path = (number = 1, day: string = MONDAY) => filePath(folder, day, number);
const sizeOf = async (number = 1) => (await stat(path(number))).size;
const keep = async (...payoutIds: string[]) => {
  for (const payoutId of payoutIds) await archive.keep([on(MONDAY, payoutId)]);
};
const keepOneADay = async () => archive.keep([on(MONDAY, 'a'), on(TUESDAY, 'b'), on(WEDNESDAY, 'c')]);
const textOf = async (number = 1) => gunzipSync(await readFile(path(number))).toString();

it('keeping payouts writes a file a day that gunzip reads, for the user alone', async () => {
  const umlaut = on(MONDAY, 'd', { reference: 'zwölf "x"' });
  await archive.keep([on(MONDAY, 'a'), on(TUESDAY, 'b'), on(MONDAY, 'c')]);
  await archive.keep([umlaut]);
  expect(path()).toBe(join(folder.dir, '4242', '2030-01-07.jsonl.gz'));
  const lines = (await textOf()).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([on(MONDAY, 'a'), on(MONDAY, 'c'), umlaut]);
  const modes = [path(), indexPath(path()), join(folder.dir, '4242')].map(async (each) => (await stat(each)).mode);
  expect((await Promise.all(modes)).map((mode) => mode & 0o777)).toEqual([0o600, 0o600, 0o700]);
});

it('keeping payouts writes nothing again that is kept and not removed, but writes what changed', async () => {
  await keep('a');
  const size = await sizeOf();
  await keep('a');
  expect(await sizeOf()).toBe(size);
  const changed = on(MONDAY, 'a', { lateGatewayId: '0xlate' });
  await archive.keep([changed]);
  expect(await sizeOf()).toBeGreaterThan(size);
  archive.forget(['a']);
  await archive.keep([changed]);
  expect(await read()).toEqual(['a']);
});

it('keeping payouts leaves the file as it is where its index cannot be written', async () => {
  await keep('a');
  const size = await sizeOf();
  await rm(indexPath(path()));
  await mkdir(indexPath(path()));
  for (const payoutId of ['b', 'c']) await expect(keep(payoutId)).rejects.toThrow(/EISDIR/);
  expect(await sizeOf()).toBe(size);
});

it('reading begins with the newest day and the newest line, and shows a payout once', async () => {
  await archive.keep([on(MONDAY, 'a'), on(MONDAY, 'b'), on(WEDNESDAY, 'c')]);
  await archive.keep([on(MONDAY, 'd'), on(TUESDAY, 'e')]);
  expect(await read()).toEqual(['c', 'e', 'd', 'b', 'a']);
  await new PayoutArchive(folder).keep([on(MONDAY, 'a', { lateGatewayId: '0xlate' })]);
  expect(await read()).toEqual(['c', 'e', 'a', 'd', 'b']);
  expect(await find('a')).toMatchObject({ lateGatewayId: '0xlate', archivedIn: path() });
  expect(damage).toEqual([]);
});

it('reading opens only the days that are asked for, or whose index has the payout', async () => {
  await keepOneADay();
  for (const day of [MONDAY, WEDNESDAY]) await writeFile(path(1, day), 'damaged');
  expect(await read({ from: TUESDAY, to: TUESDAY })).toEqual(['b']);
  expect(await find('b')).toMatchObject({ payoutId: 'b' });
  expect(await findArchived(folder, { gatewayId: '0xb' }, { onDamage })).toMatchObject({ payoutId: 'b' });
  expect(await find('nowhere')).toBeUndefined();
  expect(damage).toEqual([]);
  expect(await read()).toEqual(['b']);
  expect(damage).toHaveLength(2);
});

it('reading finds a transaction in another spelling', async () => {
  const gatewayId = `0x${'AB'.repeat(32)}`;
  await archive.keep([on(MONDAY, 'a', { gatewayId })]);
  const findSpelled = async (given: string) => findArchived(folder, { gatewayId: given }, { onDamage });
  for (const given of [gatewayId, gatewayId.toLowerCase(), 'ab'.repeat(32)]) {
    expect(await findSpelled(given)).toMatchObject({ payoutId: 'a', gatewayId });
  }
  expect(await findSpelled('cd'.repeat(32))).toBeUndefined();
});

it('reading searches a file whose index is gone', async () => {
  expect([await read(), await find('a')]).toEqual([[], undefined]);
  await keep('a');
  await rm(indexPath(path()));
  await keep('b');
  expect(await readdir(join(folder.dir, '4242'))).toEqual(['2030-01-07.jsonl.gz']);
  for (const payoutId of ['a', 'b']) expect(await find(payoutId)).toMatchObject({ payoutId });
});

it('reading finds entries behind one that was torn', async () => {
  await keep('a');
  await appendFile(indexPath(path()), Buffer.alloc(5));
  await archive.keep([on(MONDAY, 'b', { metadata: { payoutId: 'a' } })]);
  for (const payoutId of ['a', 'b']) expect((await find(payoutId))?.payoutId).toBe(payoutId);
});

it.each(['cut short', 'followed by zeros', 'damaged inside'] as const)(
  'a damaged file keeps the lines before a last member that is %s, and is not written any more',
  async (how) => {
    await keep('a');
    const before = await sizeOf();
    await keep('b');
    if (how === 'cut short') await truncate(path(), (await sizeOf()) - 7);
    if (how === 'followed by zeros') await appendFile(path(), Buffer.alloc(100));
    if (how === 'damaged inside') await writeFile(path(), damageAt(await readFile(path()), before + 30));
    const torn = await readFile(path());
    expect(await read()).toEqual(how === 'followed by zeros' ? ['b', 'a'] : ['a']);
    expect(damage).toHaveLength(1);
    await new PayoutArchive(folder).keep([on(MONDAY, 'b'), on(MONDAY, 'c')]);
    await new PayoutArchive(folder).keep([on(MONDAY, 'd')]);
    expect(await readFile(path())).toEqual(torn);
    expect((await textOf(2)).match(/"payoutId":"."/g)).toHaveLength(3);
    expect(await read()).toEqual(['d', 'c', 'b', 'a']);
    expect(await find('a')).toMatchObject({ archivedIn: path(1) });
    expect(await find('c')).toMatchObject({ archivedIn: path(2) });
  },
);

it('a damaged file keeps the lines behind damage in its middle, also of a header', async () => {
  await keep('a', 'b', 'c');
  const whole = await readFile(path());
  const second = whole.indexOf(whole.subarray(0, 16), 1);
  // The last two: a size that leads nowhere, or behind the last member.
  for (const at of [second + 30, second, second + 16, second + 18]) {
    await writeFile(path(), damageAt(whole, at));
    damage = [];
    expect(await read()).toEqual(['c', 'a']);
    expect(damage.length).toBeGreaterThan(0);
  }
});

function damageAt(bytes: Buffer, offset: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged[offset] = (damaged[offset] ?? 0) ^ 0xff;
  return damaged;
}

const SHORT_MS = 50;
const NOT_ENDED = /an earlier write, of this account or another, has not ended/;

class HeldWrite {
  isBegun = false;
  end!: () => void;
  fail!: (error: Error) => void;
  readonly #ended = new Promise<void>((resolve, reject) => {
    [this.end, this.fail] = [resolve, reject];
  });

  readonly run = async () => {
    this.isBegun = true;
    await this.#ended;
  };
}

it('turns let one write begin when the one before has ended or failed', async () => {
  const turns = new ArchiveTurns();
  const writes = [1, 2, 3].map(() => new HeldWrite());
  const taken = writes.map(async ({ run }) => turns.take(run).catch(String));
  for (const [index, write] of writes.entries()) {
    await nextTurn();
    expect(writes.map(({ isBegun }) => isBegun)).toEqual(writes.map((_, other) => other <= index));
    if (index === 1) write.fail(new Error('disk full'));
    else write.end();
    expect(await taken[index]).toBe(index === 1 ? 'Error: disk full' : undefined);
  }
});

it('an archive waits for its turn, but not for long, and then never begins to write', async () => {
  const turns = new ArchiveTurns(SHORT_MS);
  const hung = new HeldWrite();
  const first = turns.take(hung.run);
  const late = new PayoutArchive(folder, turns);
  await expect(late.keep([on(MONDAY, 'a')])).rejects.toThrow(NOT_ENDED);
  hung.end();
  await first;
  await late.keep([on(MONDAY, 'b')]);
  expect(await read()).toEqual(['b']);
});

const PROGRAM = fileURLToPath(new URL('support/keep-payouts.mjs', import.meta.url));

/**
 * Runs a writer, which is killed, or ends by itself at a file of `limit` KiB, as if the disk were full then.
 * @returns how many payouts it said to be on disk
 */
async function write(prefix: string, limit = 'unlimited') {
  const program = [process.execPath, PROGRAM, folder.dir, String(folder.platformId), prefix];
  const child = spawn('bash', ['-c', `ulimit -f ${limit}; exec "$0" "$@"`, ...program]);
  let said = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  const begun = new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await Promise.race([begun, ended]);
  if (limit === 'unlimited') await delay(Math.random() * 150).then(() => child.kill('SIGKILL'));
  await ended;
  // A last line without its end was cut off.
  return Number(said.split('\n').at(-2) ?? 0);
}

it('has every payout that a killed writer said to be on disk, each once', async () => {
  const kept = new Map([['a', await write('a', '8000')]]);
  for (const prefix of ['b', 'c', 'd']) kept.set(prefix, await write(prefix));
  const day = ['2030-01-07.2.index', '2030-01-07.2.jsonl.gz', '2030-01-07.index', '2030-01-07.jsonl.gz'];
  expect(await readdir(folderPath(folder))).toEqual(day);
  expect(Math.min(...kept.values())).toBeGreaterThan(0);
  const payoutIds = await read();
  const found = new Set(payoutIds);
  expect(found.size).toBe(payoutIds.length);
  for (const [prefix, count] of kept) {
    expect(names(count, `${prefix}-`).filter((id) => !found.has(id))).toEqual([]);
    const payoutId = `${prefix}-${count - 1}`;
    expect(await find(payoutId)).toMatchObject({ payoutId });
  }
});
