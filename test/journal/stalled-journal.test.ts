import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { makeJournalFolder, type JournalFolder } from './support/journal-folder.js';

/** A system call that does not return: what was asked, and what is asked then, is refused within seconds. */

const ATTEMPT = { payoutId: 'p', attempt: 1, token: 't-1' };
const SEND = {
  ...{ ...ATTEMPT, epoch: 1, sends: 1, after: { sends: 0, token: '' }, at: 1 },
  request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
};
const STALLED = 'has not answered for 5 s: nothing is sent until it does';

let folder: JournalFolder;
let journal: FileSendJournal;
let prototype: FileHandle;
let answers: (() => void) | undefined;

beforeEach(async () => {
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  const file = await open(join(folder.dir, 'other'), 'w');
  prototype = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
});
afterEach(async () => {
  jest.restoreAllMocks();
  answers?.();
  await folder.close();
});

/** From now on the disk does not answer to this call. @returns what lets it go on */
function hang(call: 'write' | 'datasync'): void {
  const original = Reflect.get(prototype, call) as () => Promise<never>;
  const answered = new Promise<void>((resolve) => (answers = resolve));
  jest.spyOn(prototype, call).mockImplementation(async function (this: FileHandle, ...args: unknown[]) {
    await answered;
    return original.apply(this, args as []);
  });
}

/** Behind the header and the ledger. */
const lines = async (): Promise<unknown[]> => (await folder.lines()).slice(2);

it.each(['write', 'datasync'] as const)(
  'a %s that hangs is given up, and what comes late is followed by what came of it',
  async (call) => {
    hang(call);
    await expect(journal.append(SEND)).rejects.toThrow(STALLED);
    expect(journal.isStalled).toBe(true);
    const startedAt = performance.now();
    await expect(journal.changedByOthers()).rejects.toThrow(STALLED);
    await expect(journal.reload()).rejects.toThrow(STALLED);
    await expect(journal.ensureWritable()).rejects.toThrow(STALLED);
    await expect(journal.append({ ...SEND, payoutId: 'never' })).rejects.toThrow(STALLED);
    await expect(journal.close()).rejects.toThrow(STALLED);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    journal.noteOutcome(ATTEMPT, { kind: 'not_sent', reason: 'the disk' }, 2);

    jest.restoreAllMocks();
    answers?.();
    await journal.ensureWritable().catch(() => undefined);
    while (journal.isStalled) await new Promise((resolve) => setTimeout(resolve, 10));
    await journal.reload();
    expect(await lines()).toMatchObject([{ payoutId: 'p' }, { payoutId: 'p', outcome: { kind: 'not_sent' } }]);
    expect(journal.knows('p', 1)).toBe(false);
    await journal.append({ ...SEND, attempt: 2, token: 't-2', sends: 2 });
    expect(journal.knows('p', 2)).toBe(true);
  },
  20_000,
);

it('what waits behind a call that hangs is never begun', async () => {
  hang('datasync');
  const hanging = journal.append(SEND);
  const behind = journal.append({ ...SEND, payoutId: 'q', token: 't-2', sends: 2 });
  await expect(hanging).rejects.toThrow(STALLED);
  await expect(behind).rejects.toThrow(STALLED);
  jest.restoreAllMocks();
  answers?.();
  while (journal.isStalled) await new Promise((resolve) => setTimeout(resolve, 10));
  await journal.reload();
  expect(await lines()).toMatchObject([{ payoutId: 'p' }]);
}, 20_000);

it('a process that stood still itself does not take its disk for hanging', async () => {
  hang('datasync');
  const appending = journal.append(SEND);
  await new Promise((resolve) => setTimeout(resolve, 300));
  answers?.();
  const end = performance.now() + 6_000;
  while (performance.now() < end);
  await appending;
  expect(journal.isStalled).toBe(false);
}, 20_000);
