import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { filePath, folderPath, indexPath, type ArchiveFolder } from '../../src/archive/archive-files.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { ArchiveTurns, PayoutArchive } from '../../src/archive/payout-archive.js';
import { readArchive, type ReadOptions } from '../../src/archive/read-archive.js';
import type { Payout } from '../../src/ledger/payout.js';

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

const onDamage = (message: string): void => void damage.push(message);
/** A payout as retention reads it: completed on that day, with a transaction of its own. */
function on(day: string, payoutId: string, given: Partial<Payout> = {}): Payout {
  const at = `${day}T10:00:00.000Z`;
  return {
    ...{ payoutId, state: 'completed', paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', attempt: 1, requeueCount: 0 },
    ...{ txhash: `0x${payoutId}`, createdAt: at, updatedAt: at, history: [{ at, to: 'queued' }], ...given },
  };
}

async function read(options: Partial<ReadOptions> = {}): Promise<string[]> {
  const payoutIds: string[] = [];
  for await (const payouts of readArchive(folder, { onDamage, ...options })) {
    payoutIds.push(...payouts.map(({ payoutId }) => payoutId));
  }
  return payoutIds;
}

const find = async (payoutId: string) => findArchived(folder, { payoutId }, { onDamage });

describe('keeping payouts', () => {
  it('writes a file a day that gunzip reads, for the user alone', async () => {
    await archive.keep([on(MONDAY, 'a'), on(TUESDAY, 'b'), on(MONDAY, 'c')]);
    await archive.keep([on(MONDAY, 'd', { reference: 'zwölf "x"' })]);
    const path = filePath(folder, MONDAY, 1);
    expect(path).toBe(join(folder.dir, '4242', '2030-01-07.jsonl.gz'));
    const lines = gunzipSync(await readFile(path))
      .toString()
      .trim()
      .split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      on(MONDAY, 'a'),
      on(MONDAY, 'c'),
      on(MONDAY, 'd', { reference: 'zwölf "x"' }),
    ]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(indexPath(path))).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder.dir, '4242'))).mode & 0o777).toBe(0o700);
  });

  it('writes nothing again that is kept and not removed, but writes what changed', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    const { size } = await stat(filePath(folder, MONDAY, 1));
    await archive.keep([on(MONDAY, 'a')]);
    expect((await stat(filePath(folder, MONDAY, 1))).size).toBe(size);
    await archive.keep([on(MONDAY, 'a', { lateTxhash: '0xlate' })]);
    expect((await stat(filePath(folder, MONDAY, 1))).size).toBeGreaterThan(size);
    archive.forget(['a']);
    await archive.keep([on(MONDAY, 'a', { lateTxhash: '0xlate' })]);
    expect(await read()).toEqual(['a']);
  });

  it('names the folder that cannot be written, and writes once it can', async () => {
    await writeFile(join(folder.dir, '..', '..', 'deep'), 'a file in place of the folder');
    await expect(archive.keep([on(MONDAY, 'a')])).rejects.toThrow(
      /^The archive \/.*\/deep\/archive\/4242 cannot be written: ENOTDIR.*PAYOUT_ARCHIVE_DIR.*no payout is removed$/,
    );
    await rm(join(folder.dir, '..', '..', 'deep'));
    await archive.keep([on(MONDAY, 'a')]);
    expect(await read()).toEqual(['a']);
  });

  it('leaves the file as it is where its index cannot be written, however often it is tried', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    const path = filePath(folder, MONDAY, 1);
    const { size } = await stat(path);
    await rm(indexPath(path));
    await mkdir(indexPath(path));
    for (const payoutId of ['b', 'c']) await expect(archive.keep([on(MONDAY, payoutId)])).rejects.toThrow(/EISDIR/);
    expect((await stat(path)).size).toBe(size);
  });
});

describe('reading', () => {
  it('begins with the newest day and the newest line', async () => {
    await archive.keep([on(MONDAY, 'a'), on(MONDAY, 'b'), on(WEDNESDAY, 'c')]);
    await archive.keep([on(MONDAY, 'd'), on(TUESDAY, 'e')]);
    expect(await read()).toEqual(['c', 'e', 'd', 'b', 'a']);
    expect(damage).toEqual([]);
  });

  it('shows a payout that was written twice once, as it was written last', async () => {
    await archive.keep([on(MONDAY, 'a'), on(MONDAY, 'b')]);
    await new PayoutArchive(folder).keep([on(MONDAY, 'a', { lateTxhash: '0xlate' })]);
    expect(await read()).toEqual(['a', 'b']);
    expect(await find('a')).toMatchObject({ lateTxhash: '0xlate', archivedIn: filePath(folder, MONDAY, 1) });
  });

  it('opens no file of another day', async () => {
    await archive.keep([on(MONDAY, 'a'), on(TUESDAY, 'b'), on(WEDNESDAY, 'c')]);
    for (const day of [MONDAY, WEDNESDAY]) await writeFile(filePath(folder, day, 1), 'damaged');
    expect(await read({ from: TUESDAY, to: TUESDAY })).toEqual(['b']);
    expect(damage).toEqual([]);
    expect(await read()).toEqual(['b']);
    expect(damage).toHaveLength(2);
  });

  it('finds nothing where there is no folder, or no such payout', async () => {
    expect(await read()).toEqual([]);
    expect(await find('a')).toBeUndefined();
    await archive.keep([on(MONDAY, 'a')]);
    expect(await find('b')).toBeUndefined();
  });
});

describe('finding one payout', () => {
  it('opens only the days whose index has it', async () => {
    await archive.keep([on(MONDAY, 'a'), on(TUESDAY, 'b'), on(WEDNESDAY, 'c')]);
    for (const day of [MONDAY, WEDNESDAY]) await writeFile(filePath(folder, day, 1), 'damaged');
    expect(await find('b')).toMatchObject({ payoutId: 'b' });
    expect(await findArchived(folder, { txhash: '0xb' }, { onDamage })).toMatchObject({ payoutId: 'b' });
    expect(await find('nowhere')).toBeUndefined();
    expect(damage).toEqual([]);
  });

  it('finds a transaction in another spelling, also where the version before wrote the index', async () => {
    const txhash = `0x${'AB'.repeat(32)}`;
    await archive.keep([on(MONDAY, 'a', { txhash })]);
    const findSpelled = async (given: string) => findArchived(folder, { txhash: given }, { onDamage });
    const spellings = [txhash, txhash.toLowerCase(), 'ab'.repeat(32)];
    for (const given of spellings) expect(await findSpelled(given)).toMatchObject({ payoutId: 'a', txhash });
    const entry = createHash('sha256').update(`txhash ${txhash}`).digest().subarray(0, 8);
    await writeFile(indexPath(filePath(folder, MONDAY, 1)), entry);
    for (const given of spellings) expect(await findSpelled(given)).toMatchObject({ payoutId: 'a', txhash });
    expect(await findSpelled('cd'.repeat(32))).toBeUndefined();
  });

  it('searches a file whose index is gone, and makes no new one that would lack the lines before', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    await rm(indexPath(filePath(folder, MONDAY, 1)));
    await archive.keep([on(MONDAY, 'b')]);
    expect(await readdir(join(folder.dir, '4242'))).toEqual(['2030-01-07.jsonl.gz']);
    expect(await find('a')).toMatchObject({ payoutId: 'a' });
    expect(await find('b')).toMatchObject({ payoutId: 'b' });
  });

  it('finds entries behind one that was torn', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    const index = indexPath(filePath(folder, MONDAY, 1));
    await appendFile(index, Buffer.alloc(5));
    await archive.keep([on(MONDAY, 'b')]);
    expect(await find('b')).toMatchObject({ payoutId: 'b' });
  });

  it('is not misled by its id in another payout', async () => {
    await archive.keep([on(TUESDAY, 'a')]);
    await archive.keep([on(TUESDAY, 'b', { metadata: { payoutId: 'a' } })]);
    expect((await find('a'))?.payoutId).toBe('a');
  });
});

describe('a file that was torn or damaged', () => {
  const path = (number = 1): string => filePath(folder, MONDAY, number);

  it.each(['cut short', 'followed by zeros', 'damaged inside'] as const)(
    'keeps the lines before a last member that is %s, and is not written any more',
    async (how) => {
      await archive.keep([on(MONDAY, 'a')]);
      const { size: before } = await stat(path());
      await archive.keep([on(MONDAY, 'b')]);
      const { size } = await stat(path());
      if (how === 'cut short') await truncate(path(), size - 7);
      if (how === 'followed by zeros') await appendFile(path(), Buffer.alloc(100));
      if (how === 'damaged inside') await writeFile(path(), damageAt(await readFile(path()), before + 30));
      const torn = await readFile(path());
      expect(await read()).toEqual(how === 'followed by zeros' ? ['b', 'a'] : ['a']);
      expect(damage).toHaveLength(1);

      await new PayoutArchive(folder).keep([on(MONDAY, 'b'), on(MONDAY, 'c')]);
      await new PayoutArchive(folder).keep([on(MONDAY, 'd')]);
      expect(await readFile(path())).toEqual(torn);
      expect(
        gunzipSync(await readFile(path(2)))
          .toString()
          .match(/"payoutId":"."/g),
      ).toHaveLength(3);
      expect(await read()).toEqual(['d', 'c', 'b', 'a']);
      expect(await find('a')).toMatchObject({ archivedIn: path(1) });
      expect(await find('c')).toMatchObject({ archivedIn: path(2) });
    },
  );

  it('also where this process itself was writing it', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    await appendFile(path(), (await readFile(path())).subarray(0, 40));
    await archive.keep([on(MONDAY, 'b')]);
    expect(await read()).toEqual(['b', 'a']);
    expect((await readdir(join(folder.dir, '4242'))).sort()).toEqual([
      '2030-01-07.2.index',
      '2030-01-07.2.jsonl.gz',
      '2030-01-07.index',
      '2030-01-07.jsonl.gz',
    ]);
  });

  it('keeps the lines behind damage in its middle, also of a header', async () => {
    for (const payoutId of ['a', 'b', 'c']) await archive.keep([on(MONDAY, payoutId)]);
    const whole = await readFile(path());
    const second = whole.indexOf(whole.subarray(0, 16), 1);
    for (const [at, expected] of [
      [second + 30, ['c', 'a']],
      [second, ['c', 'a']],
      // A size that leads nowhere, or behind the last member.
      [second + 16, ['c', 'a']],
      [second + 18, ['c', 'a']],
    ] as const) {
      await writeFile(path(), damageAt(whole, at));
      damage = [];
      expect(await read()).toEqual(expected);
      expect(damage.length).toBeGreaterThan(0);
    }
  });

  it('keeps a member into which the size of a damaged one leads', async () => {
    for (const payoutId of ['a', 'b', 'c']) await archive.keep([on(MONDAY, payoutId)]);
    const bytes = await readFile(path());
    const second = bytes.indexOf(bytes.subarray(0, 16), 1);
    bytes.writeUInt32LE(bytes.readUInt32LE(second + 16) + 10, second + 16);
    await writeFile(path(), bytes);
    expect(await read()).toContain('c');
  });

  it('can be joined with that of another host', async () => {
    await archive.keep([on(MONDAY, 'a')]);
    const here = await readFile(path());
    const torn = Buffer.concat([here, here.subarray(0, here.length - 3), here]);
    await writeFile(path(), torn);
    expect(await read()).toEqual(['a']);
  });
});

function damageAt(bytes: Buffer, offset: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged[offset] = (damaged[offset] ?? 0) ^ 0xff;
  return damaged;
}

const SHORT_MS = 50;
const HANGS_AFTER_MS = 30_000;
const NOT_ENDED = /an earlier write, of this account or another, has not ended/;

/** A write that ends when it is told to. */
function heldWrite() {
  let end: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const ended = new Promise<void>((resolve, reject) => {
    [end, fail] = [resolve, reject];
  });
  const write = {
    isBegun: false,
    run: async () => {
      write.isBegun = true;
      await ended;
    },
    end: () => {
      end();
    },
    fail: (message: string) => {
      fail(new Error(message));
    },
  };
  return write;
}

describe('turns', () => {
  it('let one write begin when the one before has ended, in the order in which they were asked for', async () => {
    const turns = new ArchiveTurns();
    const writes = [heldWrite(), heldWrite(), heldWrite()];
    const taken = writes.map(async ({ run }) => turns.take(run));
    for (const [index, write] of writes.entries()) {
      await nextTurn();
      expect(writes.map(({ isBegun }) => isBegun)).toEqual(writes.map((_, other) => other <= index));
      write.end();
      await taken[index];
    }
  });

  it('let the next write begin where the one before failed', async () => {
    const turns = new ArchiveTurns();
    const [one, other] = [heldWrite(), heldWrite()];
    const [first, second] = [turns.take(one.run), turns.take(other.run)];
    one.fail('disk full');
    await expect(first).rejects.toThrow('disk full');
    await nextTurn();
    other.end();
    await second;
  });

  it(
    'refuse a write that waits too long, and never begin it',
    async () => {
      const turns = new ArchiveTurns(SHORT_MS);
      const [hung, refused, later] = [heldWrite(), heldWrite(), heldWrite()];
      const first = turns.take(hung.run);
      await expect(turns.take(refused.run)).rejects.toThrow(NOT_ENDED);
      hung.end();
      await first;
      const last = turns.take(later.run);
      later.end();
      await last;
      expect([refused.isBegun, later.isBegun]).toEqual([false, true]);
    },
    HANGS_AFTER_MS,
  );
});

describe('the archives of several accounts on a folder that hangs', () => {
  const ACCOUNTS = [1, 2, 3, 4, 5, 6];
  const DAY = '2030-01-07';
  let dir: string;
  let pipes: string[];
  let ended: Promise<unknown>;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'archive-turns-'));
    pipes = [];
    for (const platformId of ACCOUNTS) {
      const folder = { dir, platformId };
      await mkdir(folderPath(folder));
      // Whatever opens a pipe to write waits for someone who reads it.
      const pipe = filePath(folder, DAY, 1);
      execFileSync('mkfifo', [pipe]);
      pipes.push(pipe);
    }
  });
  afterEach(async () => {
    // Both ends of each, and not on one of the threads for files: they may all wait.
    const ends = pipes.map((pipe) => openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK));
    await ended;
    for (const end of ends) closeSync(end);
    await rm(dir, { recursive: true, force: true });
  });

  it(
    'leave the process threads for other files',
    async () => {
      const turns = new ArchiveTurns(SHORT_MS);
      const kept = ACCOUNTS.map(async (platformId) =>
        new PayoutArchive({ dir, platformId }, turns).keep([on(DAY, 'a')]),
      );
      ended = Promise.allSettled(kept);
      for (const waiting of kept.slice(1)) await expect(waiting).rejects.toThrow(NOT_ENDED);
      await writeFile(join(dir, 'journal'), 'a send');
    },
    HANGS_AFTER_MS,
  );
});
