import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  appendFile,
  mkdir,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rm,
  writeFile,
  type FileHandle,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSendJournal } from '../../src/worker/file-send-journal.js';
import type { JournaledSend } from '../../src/worker/send-journal.js';

let dir: string;
let opened: FileSendJournal[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'journal-'));
  opened = [];
});

afterEach(async () => {
  jest.restoreAllMocks();
  for (const journal of opened) await journal.close();
  await rm(dir, { recursive: true });
});

async function open(): Promise<FileSendJournal> {
  const journal = await FileSendJournal.open({ dir, platformId: 1 });
  opened.push(journal);
  return journal;
}

function aSend(payoutId: string, sends: number): JournaledSend {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  return { payoutId, attempt: 1, epoch: 3, sends, at: 1_900_000_000_000, request };
}

describe('FileSendJournal', () => {
  it('tells when another process has added to it, and no longer once that was read', async () => {
    const one = await open();
    await one.bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(false);

    const other = await open();
    expect(other.knows('p', 1)).toBe(true);
    expect(await other.changedByOthers()).toBe(false);
    await other.append(aSend('q', 2));
    expect(await other.changedByOthers()).toBe(false);
    expect(await one.changedByOthers()).toBe(true);
    expect(one.knows('q', 1)).toBe(false);

    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
    expect(one.knows('q', 1)).toBe(true);
    expect(one.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 2 });
  });

  it('tells it also of a line that was written just before its own', async () => {
    const one = await open();
    await one.bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const other = await open();
    await other.append(aSend('p', 1));
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(true);
  });

  it('tells it also of a line that it read on the way, when it opened the file again to write', async () => {
    const one = await open();
    await one.bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const other = await open();
    await one.reload();
    await other.append(aSend('p', 1));
    await one.append(aSend('q', 2));
    expect(await one.changedByOthers()).toBe(true);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
  });

  it('reads a torn last line as none, ends it, and counts that as its own doing', async () => {
    await (await open()).bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const path = join(dir, '1.journal');
    await appendFile(path, '{"payoutId":"p');
    const journal = await open();
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('p', 1));
    expect(await journal.changedByOthers()).toBe(false);
    await journal.reload();
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
  });

  it('refuses a line in the middle that makes no sense', async () => {
    await (await open()).bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const path = join(dir, '1.journal');
    await writeFile(path, `${await readFile(path, 'utf8')}nonsense\n`);
    await expect(open()).rejects.toThrow(/cannot be read at .*1\.journal:2/);
  });
});

const LEDGER = { ledgerId: 'ledger', epoch: 2, sends: 0 };

describe('a journal', () => {
  it('has nothing to say while it is new, and is bound before its first send', async () => {
    const journal = await open();
    expect({ ledger: journal.ledger, sends: journal.lastSends(9) }).toEqual({ ledger: undefined, sends: [] });
    await expect(journal.append(aSend('p', 1))).rejects.toThrow('The journal is bound to no ledger');
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    expect(journal.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 1 });
  });

  it('gives the last sends, the newest at the end, and no more than asked for', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    for (const [index, payoutId] of ['p', 'q', 'r'].entries()) await journal.append(aSend(payoutId, index + 1));
    expect(journal.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['q', 'r']);
  });

  it('never lowers what it has seen', async () => {
    const journal = await open();
    await journal.bind({ ledgerId: 'ledger', epoch: 9, sends: 9 });
    await journal.append(aSend('p', 1));
    expect(journal.ledger).toEqual({ ledgerId: 'ledger', epoch: 9, sends: 9 });
  });

  it('tells how long each write took', async () => {
    const took: number[] = [];
    const journal = await FileSendJournal.open({ dir, platformId: 1, onSynced: (ms) => took.push(ms) });
    opened.push(journal);
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    expect(took).toHaveLength(2);
    expect(took.every((ms) => ms >= 0 && ms < 10_000)).toBe(true);
  });

  it('can be closed twice, and changes no byte of a sound file when it is opened again', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await journal.close();
    await journal.close();
    const before = await readFile(join(dir, '1.journal'), 'utf8');
    await open();
    expect(await readFile(join(dir, '1.journal'), 'utf8')).toBe(before);
  });

  it('marks a line that a crash tore, and reads empty lines as none', async () => {
    await writeFile(join(dir, '1.journal'), `${JSON.stringify(LEDGER)}\n\n{"payoutId"`);
    const journal = await open();
    expect(journal.ledger).toEqual(LEDGER);
    expect((await readFile(join(dir, '1.journal'), 'utf8')).split('\n').at(-2)).toBe('{"payoutId" torn');
  });

  it('is not taken for empty when it cannot be read', async () => {
    await mkdir(join(dir, '1.journal'));
    await expect(FileSendJournal.read({ dir, platformId: 1 })).rejects.toThrow('EISDIR');
    await expect(FileSendJournal.open({ dir, platformId: 1 })).rejects.toThrow('EISDIR');
  });
});

describe('reading only', () => {
  it('makes nothing where there is no journal', async () => {
    const journal = await FileSendJournal.read({ dir, platformId: 1 });
    expect({ ledger: journal.ledger, sends: journal.lastSends(9) }).toEqual({ ledger: undefined, sends: [] });
    expect(await readdir(dir)).toEqual([]);
  });

  it('leaves a torn last line as it is', async () => {
    await writeFile(join(dir, '1.journal'), `${JSON.stringify(LEDGER)}\n${JSON.stringify(aSend('p', 1))}\n{"payoutId"`);
    const before = await readFile(join(dir, '1.journal'), 'utf8');
    const journal = await FileSendJournal.read({ dir, platformId: 1 });
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
    expect(await readFile(join(dir, '1.journal'), 'utf8')).toBe(before);
  });

  it('finds sends also where the line with the ledger is missing', async () => {
    await writeFile(join(dir, '1.journal'), `${JSON.stringify(aSend('p', 1))}\n`);
    const journal = await FileSendJournal.read({ dir, platformId: 1 });
    expect({ ledger: journal.ledger, sends: journal.lastSends(9) }).toEqual({
      ledger: undefined,
      sends: [aSend('p', 1)],
    });
  });
});

describe('a write that fails', () => {
  it('is told, and what came on disk all the same is known afterwards', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    jest.spyOn(await aHandle(), 'datasync').mockRejectedValueOnce(new Error('EIO: i/o error'));
    await expect(journal.append(aSend('p', 1))).rejects.toThrow(/1\.journal cannot be written: EIO/);
    expect(journal.knows('p', 1)).toBe(false);
    await journal.ensureWritable();
    expect(journal.knows('p', 1)).toBe(true);
  });

  it('in part is a failure, and the torn line announces nothing', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    jest.spyOn(await aHandle(), 'write').mockImplementationOnce(async () => {
      await appendFile(join(dir, '1.journal'), '{"payo');
      return { bytesWritten: 6, buffer: '' };
    });
    await expect(journal.append(aSend('p', 1))).rejects.toThrow(/only 6 of \d+ bytes could be written/);
    await journal.append(aSend('q', 1));
    expect(journal.lastSends(9)).toEqual([aSend('q', 1)]);
    // What is there of it may as well be another's, until it was looked at.
    expect(await journal.changedByOthers()).toBe(true);
    await journal.reload();
    expect(await journal.changedByOthers()).toBe(false);
  });
});

describe('a journal that has grown large', () => {
  it('tells also of a line that another wrote just before the new file began', async () => {
    const one = await open();
    await one.bind(LEDGER);
    const other = await open();
    await other.append(aSend('q', 1));
    const send = aSend('p', 2);
    await one.append({ ...send, request: { ...send.request, addressTo: 'x'.repeat(32 * 1024 * 1024) } });
    expect(await one.changedByOthers()).toBe(true);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
  });

  it('begins a new file; whoever reads both still knows everything, and writes on in the new one', async () => {
    const one = await open();
    await one.bind(LEDGER);
    const other = await open();
    const send = aSend('p', 1);
    await one.append({ ...send, request: { ...send.request, addressTo: 'x'.repeat(32 * 1024 * 1024) } });
    expect((await readdir(dir)).sort()).toEqual(['1.journal', '1.journal.1']);
    expect(one.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 1 });
    expect(one.knows('p', 1)).toBe(true);
    expect(await one.changedByOthers()).toBe(false);

    // The new file is as long as the old one was when the other read it.
    expect(await other.changedByOthers()).toBe(true);
    await other.reload();
    expect(other.knows('p', 1)).toBe(true);
    await other.append(aSend('q', 2));
    expect(await other.changedByOthers()).toBe(false);
    const lines = (await readFile(join(dir, '1.journal'), 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { ledgerId: 'ledger', epoch: 3, sends: 1 },
      aSend('q', 2),
    ]);
  });
});

/** What all open files have in common, to let one of their methods fail. */
async function aHandle(): Promise<FileHandle> {
  const file = await openFile(join(dir, '1.journal'), 'r');
  await file.close();
  return Object.getPrototypeOf(file) as FileHandle;
}
