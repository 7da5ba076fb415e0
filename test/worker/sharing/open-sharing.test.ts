import { mkdir, rename, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { silentLogger as logger } from '../../../src/base/logger.js';
import { followJournal, nameFolder } from '../../../src/worker/sharing/open-sharing.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { LEDGER, longSends, makeJournalFolder } from '../../journal/support/journal-folder.js';
import { until } from '../../support/until.js';
import { closeAfterTest, folderOfTest } from '../support/close-after-test.js';

it('keeps a journal usable whose files another process fills and removes', async () => {
  const folder = closeAfterTest(await makeJournalFolder());
  const [resting, sending] = [await folder.open({ keepDays: 10 }), await folder.open({ keepDays: 10 })];
  const clock = new ManualClock();
  const end = new AbortController();
  let reads = 0;
  const reload = async (): Promise<void> => resting.reload().then(() => void (reads += 1));
  const following = followJournal({ reload }, { clock, logger }, end.signal);
  await sending.bind(LEDGER);
  for (const [index, name] of ['a', 'b', 'c', 'd'].entries()) {
    for (const send of longSends(name, index * 20 + 1)) await sending.append(send);
    const readsBefore = reads;
    await until(`what ${name} filled was read`, async () => {
      await clock.advance(60_000);
      // One of them may have begun while the file was filled, and know nothing of the next.
      return reads >= readsBefore + 2;
    });
    expect(resting.lastSends(1)).toEqual(sending.lastSends(1));
    // The newest full file is one that nothing was added to for a month.
    const old = new Date(Date.now() - 30 * 24 * 3_600_000);
    await utimes(folder.path(index + 1), old, old);
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
  const reload = async (): Promise<void> => Promise.reject(new Error(`EIO ${(reads += 1)}`));
  const following = followJournal({ reload }, { clock, logger }, end.signal);
  await clock.advance(11 * 60_000);
  expect(reads).toBe(3);
  end.abort();
  await following;
});

it('a folder has one name, under any path; others, also of copied hosts, have others', async () => {
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
