import { utimes } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { silentLogger } from '../../../src/base/logger.js';
import { followJournal } from '../../../src/worker/sharing/open-sharing.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { LEDGER, longSends, makeJournalFolder, type JournalFolder } from '../../journal/support/journal-folder.js';
import { until } from '../../support/until.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
const KEPT = { keepDays: 10 };

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => folder.close());

/** Appends as many sends as fill a file. */
async function fill(journal: FileSendJournal, name: string, first: number): Promise<void> {
  for (const send of longSends(name, first)) await journal.append(send);
}

/** Lets the newest full file be one that nothing was added to for a month. */
async function age(number: number): Promise<void> {
  const old = new Date(Date.now() - 30 * DAY_MS);
  await utimes(folder.path(number), old, old);
}

it('keeps a journal usable whose files another process fills and removes', async () => {
  const resting = await folder.open(KEPT);
  const sending = await folder.open(KEPT);
  const clock = new ManualClock();
  const end = new AbortController();
  let reads = 0;
  const reload = async (): Promise<void> => {
    await resting.reload();
    reads += 1;
  };
  const following = followJournal({ reload }, { clock, logger: silentLogger }, end.signal);
  await sending.bind(LEDGER);
  for (const [index, name] of ['a', 'b', 'c', 'd'].entries()) {
    await fill(sending, name, index * 20 + 1);
    const readsBefore = reads;
    await until(`what ${name} filled was read`, async () => {
      await clock.advance(60_000);
      // One of them may have begun while the file was filled, and know nothing of the next.
      return reads >= readsBefore + 2;
    });
    expect(resting.lastSends(1)).toEqual(sending.lastSends(1));
    await age(index + 1);
    await sending.reload();
    await sending.ensureWritable();
  }
  end.abort();
  await following;
  await expect(folder.text(1)).rejects.toThrow('ENOENT');
  await resting.reload();
  expect(resting.lastSends(1)).toEqual(sending.lastSends(1));
});

it('continues after a journal that cannot be read, and ends with the signal', async () => {
  const clock = new ManualClock();
  const end = new AbortController();
  let reads = 0;
  const journal = {
    reload: async (): Promise<void> => {
      reads += 1;
      return Promise.reject(new Error('EIO'));
    },
  };
  const following = followJournal(journal, { clock, logger: silentLogger }, end.signal);
  await clock.advance(11 * 60_000);
  expect(reads).toBe(3);
  end.abort();
  await following;
  await clock.advance(11 * 60_000);
  expect(reads).toBe(3);
});
