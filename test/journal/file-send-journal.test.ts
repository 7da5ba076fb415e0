import { appendFile, open as openFile, readdir, type FileHandle } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { toChainedLines } from '../../src/journal/line-chain.js';
import {
  aSend,
  folder,
  HEADER,
  headerOf,
  itemsOf,
  lastHash,
  LEDGER,
  outcomeOf,
  useFolder,
} from './support/journal-folder.js';

useFolder();
afterEach(() => {
  jest.restoreAllMocks();
});

const read = async () => readJournal(folder.dir, 1);
const PEER = { journalId: 'j-two', host: 'host-2', dir: '/journal' };
const ACCEPTED = { kind: 'accepted', gatewayId: 'h' } as const;
const NOT_SENT = { kind: 'not_sent', reason: 'refused' } as const;

describe('a journal that two processes write', () => {
  it('reports when another process has added to it, until that was read', async () => {
    const one = await folder.bound();
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(false);
    const other = await folder.open();
    expect(other.knows('p', 1)).toBe(true);
    await other.append(aSend('q', 2));
    expect([await other.changedByOthers(), await one.changedByOthers()]).toEqual([false, true]);
    expect(one.knows('q', 1)).toBe(false);
    await one.reload();
    expect([await one.changedByOthers(), one.knows('q', 1)]).toEqual([false, true]);
    expect(one.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 2, token: 't-2' });
  });

  it('reports it also for a line just before its own', async () => {
    const one = await folder.bound();
    await (await folder.open()).append(aSend('p', 1, { token: 'theirs' }));
    await one.append(aSend('p', 1));
    expect([await one.changedByOthers(), one.knowsFromAnother(aSend('p', 1))]).toEqual([true, false]);
    await one.reload();
    expect([await one.changedByOthers(), one.knowsFromAnother(aSend('p', 1))]).toEqual([false, true]);
  });

  it('has one id for both, also when both make it', async () => {
    const journals = await Promise.all(Array.from({ length: 8 }, async () => folder.open()));
    expect(new Set(journals.map(({ journalId }) => journalId)).size).toBe(1);
    expect(await folder.lines()).toEqual([headerOf(journals[0]?.journalId)]);
    expect(await readdir(folder.dir)).toEqual(['1.journal']);
  });
});

it('a journal has but its id while it is new, and is bound before its first send', async () => {
  const journal = await folder.open();
  expect(journal.journalId).toMatch(/^[0-9a-f]{12}$/);
  expect([journal.ledger, journal.lastSends(9), journal.peers]).toEqual([undefined, [], []]);
  await expect(journal.append(aSend('p', 1))).rejects.toThrow('The journal is bound to no ledger');
  await journal.bind(LEDGER);
  await journal.append(aSend('p', 1));
  expect(journal.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 1, token: 't-1' });
});

it('a journal keeps id, peers, sends and outcomes, and changes no byte when opened again', async () => {
  const journal = await folder.bound();
  await journal.notePeers([{ ...PEER, sends: 7 } as typeof PEER]);
  await journal.append(aSend('p', 1));
  journal.noteOutcome(aSend('p', 1), ACCEPTED, 5);
  await journal.close();
  await journal.close();
  const before = await folder.text();
  const again = await folder.open();
  expect([again.journalId, again.peers]).toEqual([journal.journalId, [PEER]]);
  expect(again.lastSends(9)).toEqual([{ ...aSend('p', 1), outcome: ACCEPTED }]);
  expect(await folder.text()).toBe(before);
});

it('an outcome is in the file before the next send; how long a sync took is told', async () => {
  const took: number[] = [];
  const journal = await folder.bound({ onSynced: (ms: number) => took.push(ms) });
  await journal.append(aSend('p', 1));
  journal.noteOutcome(aSend('p', 1), NOT_SENT, 5);
  await journal.append(aSend('q', 2));
  await journal.append(aSend('r', 3));
  expect([journal.knows('p', 1), await journal.changedByOthers()]).toEqual([false, false]);
  expect((await folder.lines()).slice(1)).toEqual([
    LEDGER,
    aSend('p', 1),
    { payoutId: 'p', attempt: 1, token: 't-1', outcome: NOT_SENT, at: 5 },
    aSend('q', 2),
    aSend('r', 3),
  ]);
  expect(journal.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['q', 'r']);
  expect(took).toHaveLength(3);
  expect(took.every((ms) => ms >= 0 && ms < 10_000)).toBe(true);
});

it('a journal refuses a line in the middle that makes no sense, also while it is in use', async () => {
  const journal = await folder.bound();
  await folder.add('nonsense\n');
  expect(await journal.changedByOthers()).toBe(true);
  await expect(journal.reload()).rejects.toThrow(/cannot be read at .*1\.journal, byte \d+/);
  await expect(journal.append(aSend('p', 1))).rejects.toThrow(/cannot be read at/);
  for (const look of [async () => folder.open(), read])
    await expect(look()).rejects.toThrow(/cannot be read at .*1\.journal:3/);
});

it('a journal never writes a line that nobody could read again, and writes what follows', async () => {
  const troubles: string[] = [];
  const journal = await folder.bound({ onTrouble: ({ message }: Error) => troubles.push(message) });
  const before = await folder.texts();
  const refused = 'A line of payout p was not written to the send journal: nobody could read it again.';
  for (const attempt of [NaN, 1.5]) {
    await expect(journal.append(aSend('p', 1, { attempt }))).rejects.toThrow(refused);
  }
  const nameless = { ledgerId: 'ledger', epoch: NaN, sends: 0, token: '' };
  await expect(journal.bind(nameless)).rejects.toThrow('A line of ledgerId, epoch, sends, token was not written');
  journal.noteOutcome(aSend('p', 1, { attempt: NaN }), ACCEPTED, 5);
  await journal.append(aSend('q', 1));
  expect(troubles).toEqual([refused]);
  expect(await folder.texts()).toHaveLength(before.length + 1);
  expect((await folder.open()).knows('q', 1)).toBe(true);
});

describe('a last line that a crash tore', () => {
  it('is marked, read as none, and counts as nobody else’s', async () => {
    await folder.write([HEADER, LEDGER]);
    await folder.add('\n{"payoutId":"p"');
    const journal = await folder.open();
    expect(journal.ledger).toEqual(LEDGER);
    expect((await folder.text()).split('\n').at(-2)).toBe('{"payoutId":"p" torn');
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('p', 1));
    expect(await journal.changedByOthers()).toBe(false);
    await journal.reload();
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
  });

  it('of another process is left to it while it may still be written', async () => {
    const journal = await folder.bound();
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

/** What all open files have in common, to let one of their methods fail. */
async function aHandle(): Promise<FileHandle> {
  const file = await openFile(folder.path(), 'r');
  await file.close();
  return Object.getPrototypeOf(file) as FileHandle;
}

it('a write that fails is told, and what came on disk all the same is known afterwards', async () => {
  const journal = await folder.bound();
  jest.spyOn(await aHandle(), 'datasync').mockRejectedValueOnce(new Error('EIO: i/o error'));
  await expect(journal.append(aSend('p', 1))).rejects.toThrow(/1\.journal cannot be written: EIO/);
  expect(journal.knows('p', 1)).toBe(false);
  await journal.ensureWritable();
  expect([journal.knows('p', 1), await journal.changedByOthers()]).toEqual([true, false]);
});

it('a write that fails in part is a failure, and the torn line announces nothing', async () => {
  const journal = await folder.bound();
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

it('a full disk is the trouble of the disk also where it refuses to mark a torn line', async () => {
  const journal = await folder.bound();
  await journal.append(aSend('p', 1));
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
  const half = async () => {
    await appendFile(folder.path(), '{"payo');
    return { bytesWritten: 6, buffer: '' };
  };
  jest
    .spyOn(await aHandle(), 'write')
    .mockImplementationOnce(half)
    .mockRejectedValueOnce(full);
  await expect(journal.append(aSend('q', 2))).rejects.toThrow(/only 6 of \d+ bytes/);
  await expect(journal.ensureWritable()).rejects.toMatchObject({ code: 'JOURNAL_UNAVAILABLE', cause: full });
  await journal.append(aSend('q', 2));
  expect(journal.lastSends(9)).toEqual([aSend('p', 1), aSend('q', 2)]);
});

it('a write that fails of an outcome is told and throws nothing', async () => {
  const troubles: string[] = [];
  const journal = await folder.bound({ onTrouble: ({ message }: Error) => troubles.push(message) });
  await journal.append(aSend('p', 1));
  jest.spyOn(await aHandle(), 'write').mockRejectedValueOnce(new Error('ENOSPC: no space left on device'));
  journal.noteOutcome(aSend('p', 1), ACCEPTED, 5);
  await journal.ensureWritable();
  expect(troubles).toEqual([expect.stringMatching(/1\.journal cannot be written: ENOSPC/)]);
  expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
  await journal.append(aSend('q', 2));
});

it('reading makes no journal where there is none, and leaves a torn last line as it is', async () => {
  expect([await read(), await readJournal(`${folder.dir}/missing`, 1)]).toEqual([undefined, undefined]);
  expect(await readdir(folder.dir)).toEqual([]);
  await folder.write([HEADER, LEDGER, aSend('p', 1)]);
  await folder.add('{"payoutId"');
  const before = await folder.text();
  const journal = await read();
  expect([journal?.journalId, journal?.lastSends(9)]).toEqual(['abcdef012345', [aSend('p', 1)]]);
  expect(await folder.text()).toBe(before);
});

describe('the items of a journal', () => {
  it('are what stands in all files, the oldest first, each send with its outcome', async () => {
    const [p, q, r] = [aSend('p', 1), aSend('q', 2), aSend('r', 4)];
    const adopted = { ...LEDGER, sends: 3, token: 'adoption', adopted: true };
    await folder.write([HEADER, LEDGER, p, { peers: [PEER] }, outcomeOf(p, 'not_sent'), q], 1);
    await folder.write([HEADER, LEDGER, outcomeOf(q, 'accepted'), adopted, r]);
    expect(await itemsOf(await folder.open())).toEqual([
      LEDGER,
      { ...p, outcome: { kind: 'not_sent', reason: 'the connection ended' }, outcomeAt: 1_900_000_000_500 },
      { peers: [PEER] },
      { ...q, outcome: { kind: 'accepted', gatewayId: 'h-q' }, outcomeAt: 1_900_000_000_500 },
      LEDGER,
      adopted,
      r,
    ]);
  });

  it('are given a few at a time: no outcome hundreds of sends behind its own is waited for', async () => {
    const sends = Array.from({ length: 300 }, (_, index) => aSend(`p-${index}`, index + 1));
    const outcomes = [1, 0].map((index) => outcomeOf(sends[index] ?? aSend('none', 1), 'accepted'));
    await folder.write([HEADER, ...sends.toSpliced(152, 0, outcomes[0] as never), ...outcomes.slice(1)]);
    const items = await itemsOf(await folder.open());
    expect(items).toMatchObject(sends.map(({ payoutId }) => ({ payoutId })));
    expect(items.filter((item) => 'outcome' in item)).toMatchObject([{ payoutId: 'p-1' }]);
  });

  it('say where a line makes no sense, also in a file that nothing else reads', async () => {
    await folder.write([HEADER, LEDGER, { payoutId: 'p' }], 1);
    await folder.write([HEADER, LEDGER], 2);
    await folder.write([HEADER, LEDGER]);
    await expect(itemsOf(await folder.open())).rejects.toThrow(/cannot be read at .*1\.journal\.1:3/);
  });
});

/** A system call that does not return: what was asked, and what is asked then, is refused within seconds. */
describe('a disk that does not answer', () => {
  const STALLED = 'has not answered for 5 s: nothing is sent until it does';
  /** Longer than mutation testing gives other tests. */
  const LIMIT_MS = 30_000;
  let journal: FileSendJournal;
  let answers: (() => void) | undefined;
  beforeEach(async () => {
    journal = await folder.bound();
  });
  afterEach(() => answers?.());

  async function hang(call: 'write' | 'datasync') {
    const prototype = await aHandle();
    const original = Reflect.get(prototype, call) as () => Promise<never>;
    const answered = new Promise<void>((resolve) => (answers = resolve));
    jest.spyOn(prototype, call).mockImplementation(async function (this: FileHandle, ...args: unknown[]) {
      await answered;
      return original.apply(this, args as []);
    });
  }

  async function answer() {
    jest.restoreAllMocks();
    answers?.();
    while (journal.isStalled) await new Promise((resolve) => setTimeout(resolve, 10));
    await journal.reload();
  }

  it.each(['write', 'datasync'] as const)(
    'to a %s is given up: what waits behind is never begun, what comes late counts',
    async (call) => {
      await hang(call);
      const behind = [journal.append(aSend('p', 1)), journal.append(aSend('behind', 2))];
      for (const appending of await Promise.allSettled(behind)) {
        expect(appending).toMatchObject({ reason: { message: expect.stringContaining(STALLED) } });
      }
      expect(journal.isStalled).toBe(true);
      const startedAt = performance.now();
      for (const asked of [
        journal.changedByOthers(),
        journal.reload(),
        journal.ensureWritable(),
        journal.append(aSend('never', 1)),
        journal.close(),
      ]) {
        await expect(asked).rejects.toThrow(STALLED);
      }
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      journal.noteOutcome(aSend('p', 1), NOT_SENT, 2);
      await answer();
      expect((await folder.lines()).slice(2)).toMatchObject([{ payoutId: 'p' }, { payoutId: 'p', outcome: NOT_SENT }]);
      expect(journal.knows('p', 1)).toBe(false);
      await journal.append(aSend('p', 2, { attempt: 2 }));
      expect(journal.knows('p', 2)).toBe(true);
    },
    LIMIT_MS,
  );

  it(
    'is not taken for hanging by a process that stood still itself',
    async () => {
      await hang('datasync');
      const appending = journal.append(aSend('p', 1));
      await new Promise((resolve) => setTimeout(resolve, 300));
      answers?.();
      const end = performance.now() + 5_500;
      while (performance.now() < end) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
      await appending;
      expect(journal.isStalled).toBe(false);
    },
    LIMIT_MS,
  );
});
