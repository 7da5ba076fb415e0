import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { appendFile, mkdir, open as openFile, readdir, type FileHandle } from 'node:fs/promises';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { toChainedLines } from '../../src/journal/line-chain.js';
import {
  aSend,
  HEADER,
  headerOf,
  lastHash,
  LEDGER,
  makeJournalFolder,
  type JournalFolder,
} from './support/journal-folder.js';

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await folder.close();
});

const open = async (): Promise<FileSendJournal> => folder.open();
const read = async () => readJournal(folder.dir, 1);
const PEER = { journalId: 'j-two', host: 'host-2', dir: '/journal' };

describe('a journal that two processes write', () => {
  it('reports when another process has added to it, and no longer once that was read', async () => {
    const one = await open();
    await one.bind(LEDGER);
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
    expect(one.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 2, token: 't-2' });
  });

  it('reports it also for a line that was written just before its own', async () => {
    const one = await open();
    await one.bind(LEDGER);
    const other = await open();
    await other.append(aSend('p', 1, { token: 'theirs' }));
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(true);
    expect(one.knowsFromAnother(aSend('p', 1))).toBe(false);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
    expect(one.knowsFromAnother(aSend('p', 1))).toBe(true);
  });

  it('reports it also for a line that it read on the way, when it opened the file again to write', async () => {
    const one = await open();
    await one.bind(LEDGER);
    const other = await open();
    await one.reload();
    await other.append(aSend('p', 1));
    await one.append(aSend('q', 2));
    expect(await one.changedByOthers()).toBe(true);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
  });

  it('has one id for both, also when both make it', async () => {
    const journals = await Promise.all(Array.from({ length: 8 }, open));
    expect(new Set(journals.map(({ journalId }) => journalId)).size).toBe(1);
    expect(await folder.lines()).toEqual([headerOf(journals[0]?.journalId)]);
    expect(await readdir(folder.dir)).toEqual(['1.journal']);
  });
});

describe('a journal', () => {
  it('has nothing to say while it is new but its id, and is bound before its first send', async () => {
    const journal = await open();
    expect(journal.journalId).toMatch(/^[0-9a-f]{12}$/);
    expect({ ledger: journal.ledger, sends: journal.lastSends(9), peers: journal.peers }).toEqual({
      ledger: undefined,
      sends: [],
      peers: [],
    });
    await expect(journal.append(aSend('p', 1))).rejects.toThrow('The journal is bound to no ledger');
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    expect(journal.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 1, token: 't-1' });
  });

  it('keeps its id, its peers and its sends with their outcomes', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await journal.notePeers([{ ...PEER, sends: 7 } as typeof PEER]);
    await journal.append(aSend('p', 1));
    journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
    await journal.close();
    const again = await open();
    expect(again.journalId).toBe(journal.journalId);
    expect(again.peers).toEqual([PEER]);
    expect(again.lastSends(9)).toEqual([{ ...aSend('p', 1), outcome: { kind: 'accepted', txhash: 'h' } }]);
  });

  it('has an outcome in the file before the next send', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    journal.noteOutcome(aSend('p', 1), { kind: 'not_sent', reason: 'refused' }, 5);
    await journal.append(aSend('q', 2));
    expect(journal.knows('p', 1)).toBe(false);
    expect(await folder.lines()).toEqual([
      headerOf(journal.journalId),
      LEDGER,
      aSend('p', 1),
      { payoutId: 'p', attempt: 1, token: 't-1', outcome: { kind: 'not_sent', reason: 'refused' }, at: 5 },
      aSend('q', 2),
    ]);
    expect(await journal.changedByOthers()).toBe(false);
  });

  it('gives the last sends, the newest at the end, and no more than asked for', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    for (const [index, payoutId] of ['p', 'q', 'r'].entries()) await journal.append(aSend(payoutId, index + 1));
    expect(journal.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['q', 'r']);
  });

  it('reports how long each send took to be on disk', async () => {
    const took: number[] = [];
    const journal = await folder.open({ onSynced: (ms) => took.push(ms) });
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
    await journal.close();
    expect(took).toHaveLength(1);
    expect(took.every((ms) => ms >= 0 && ms < 10_000)).toBe(true);
  });

  it('can be closed twice, and changes no byte of a sound file when it is opened again', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await journal.close();
    await journal.close();
    const before = await folder.text();
    await open();
    expect(await folder.text()).toBe(before);
  });

  it('is not taken for empty when it cannot be read', async () => {
    await mkdir(folder.path());
    await expect(read()).rejects.toThrow('EISDIR');
    await expect(open()).rejects.toThrow('EISDIR');
  });

  it('refuses a line in the middle that makes no sense', async () => {
    await folder.write([HEADER, LEDGER]);
    await folder.add('nonsense\n');
    await expect(open()).rejects.toThrow(/cannot be read at .*1\.journal:3/);
    await expect(read()).rejects.toThrow(/cannot be read at .*1\.journal:3/);
  });

  it('refuses such a line also when another process writes it while it is in use', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await folder.add('nonsense\n');
    expect(await journal.changedByOthers()).toBe(true);
    await expect(journal.reload()).rejects.toThrow(/cannot be read at .*1\.journal, byte \d+/);
    await expect(journal.append(aSend('p', 1))).rejects.toThrow(/cannot be read at/);
  });
});

describe('a last line that a crash tore', () => {
  it('is read as none, ended, and counts as nobody else’s', async () => {
    await (await open()).bind(LEDGER);
    await folder.add('{"payoutId":"p"');
    const journal = await open();
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('p', 1));
    expect(await journal.changedByOthers()).toBe(false);
    await journal.reload();
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
  });

  it('is marked; empty lines are none', async () => {
    await folder.write([HEADER, LEDGER]);
    await folder.add('\n{"payoutId"');
    const journal = await open();
    expect(journal.ledger).toEqual(LEDGER);
    expect((await folder.text()).split('\n').at(-2)).toBe('{"payoutId" torn');
  });

  it('of another process is left to it while it may still be written', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    const line = toChainedLines([aSend('p', 1)], lastHash(await folder.text()));
    await folder.add(line.slice(0, 20));
    await journal.reload();
    expect(journal.knows('p', 1)).toBe(false);
    await folder.add(line.slice(20));
    expect(await journal.changedByOthers()).toBe(true);
    await journal.reload();
    expect(journal.knows('p', 1)).toBe(true);
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
    expect(await journal.changedByOthers()).toBe(false);
  });

  it('in part is a failure, and the torn line announces nothing', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    jest.spyOn(await aHandle(), 'write').mockImplementationOnce(async () => {
      await appendFile(folder.path(), '{"payo');
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

  it('of an outcome is told and throws nothing; the send stays without one', async () => {
    const troubles: string[] = [];
    const journal = await folder.open({ onTrouble: ({ message }) => troubles.push(message) });
    await journal.bind(LEDGER);
    await journal.append(aSend('p', 1));
    jest.spyOn(await aHandle(), 'write').mockRejectedValueOnce(new Error('ENOSPC: no space left on device'));
    journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
    await journal.ensureWritable();
    expect(troubles).toEqual([expect.stringMatching(/1\.journal cannot be written: ENOSPC/)]);
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
    await journal.append(aSend('q', 2));
  });
});

/** What all open files have in common, to let one of their methods fail. */
async function aHandle(): Promise<FileHandle> {
  const file = await openFile(folder.path(), 'r');
  await file.close();
  return Object.getPrototypeOf(file) as FileHandle;
}

describe('a line that nobody could read again', () => {
  const nameless = { ledgerId: 'ledger', epoch: NaN, sends: 0, token: '' };

  it('is never written, and what follows is', async () => {
    const troubles: string[] = [];
    const journal = await folder.open({ onTrouble: (error) => troubles.push(error.message) });
    await journal.bind(LEDGER);
    const before = await folder.text();
    const refused = 'A line of payout p was not written to the send journal: nobody could read it again.';
    await expect(journal.append(aSend('p', 1, { attempt: NaN }))).rejects.toThrow(refused);
    await expect(journal.append(aSend('p', 1, { attempt: 1.5 }))).rejects.toThrow(refused);
    await expect(journal.bind(nameless)).rejects.toThrow('A line of ledgerId, epoch, sends, token was not written');
    journal.noteOutcome(aSend('p', 1, { attempt: NaN }), { kind: 'accepted', txhash: 'h' }, 5);
    await journal.append(aSend('q', 1));
    expect(troubles).toEqual([refused]);
    const added = (await folder.text()).slice(before.length);
    expect(added.trimEnd().split('\n')).toHaveLength(1);
    expect((await folder.open()).knows('q', 1)).toBe(true);
  });
});
