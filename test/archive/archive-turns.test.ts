import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { filePath, folderPath } from '../../src/archive/archive-files.js';
import { ArchiveTurns, PayoutArchive } from '../../src/archive/payout-archive.js';
import { aCompletedPayout } from './support/archived-payout.js';

const SHORT_MS = 50;
const HANGS_AFTER_MS = 30_000;
const NOT_ENDED = /an earlier write, of this account or another, has not ended/;

/** A write that ends when it is told to. */
class HeldWrite {
  isBegun = false;
  readonly #end = new EventEmitter();
  readonly run = async (): Promise<void> => {
    this.isBegun = true;
    await once(this.#end, 'end');
  };

  end(): void {
    this.#end.emit('end');
  }

  fail(message: string): void {
    this.#end.emit('error', new Error(message));
  }
}

describe('turns', () => {
  it('let one write begin when the one before has ended, in the order in which they were asked for', async () => {
    const turns = new ArchiveTurns();
    const writes = [new HeldWrite(), new HeldWrite(), new HeldWrite()];
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
    const [one, other] = [new HeldWrite(), new HeldWrite()];
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
      const [hung, refused, later] = [new HeldWrite(), new HeldWrite(), new HeldWrite()];
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
        new PayoutArchive({ dir, platformId }, turns).keep([aCompletedPayout('a', `${DAY}T10:00:00.000Z`)]),
      );
      ended = Promise.allSettled(kept);
      for (const waiting of kept.slice(1)) await expect(waiting).rejects.toThrow(NOT_ENDED);
      await writeFile(join(dir, 'journal'), 'a send');
    },
    HANGS_AFTER_MS,
  );
});
