import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createFile, listFiles, setAside } from '../../src/journal/journal-files.js';
import { JournalReader, readJournal } from '../../src/journal/journal-reader.js';
import { toChainedLines } from '../../src/journal/line-chain.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { aSend, HEADER, lastHash, LEDGER, makeJournalFolder, type JournalFolder } from './support/journal-folder.js';

/** What processes read while another one begins new files as fast as it can. */

const ROTATIONS = 30;

let folder: JournalFolder;
let sends = 0;
let isOver = false;
beforeEach(async () => {
  folder = await makeJournalFolder();
  await folder.write([HEADER, LEDGER, aSend('p', (sends = 1))]);
  isOver = false;
});
afterEach(async () => folder.close());

async function rotate(): Promise<void> {
  for (let count = 0; count < ROTATIONS; count += 1) {
    const prev = lastHash(await folder.text());
    await setAside(folder.path());
    await createFile(folder.path(), toChainedLines([HEADER, LEDGER, aSend('p', sends + 1)], prev));
    sends += 1;
  }
  isOver = true;
}

/** Reads until the last file was begun, and once more. */
async function readBeside(read: () => Promise<void>): Promise<void> {
  const rotating = rotate();
  try {
    while (!isOver) await read();
  } finally {
    await rotating;
  }
  await read();
}

describe('while another process begins new files', () => {
  it('a journal that is opened or read on is never taken for damaged, and no line is left out', async () => {
    const reader = new JournalReader(folder.path());
    await readBeside(async () => {
      const before = sends;
      await reader.catchUp();
      const read = await readJournal(folder.dir, 1);
      for (const last of [reader.view.lastSends(1), read?.lastSends(1)]) {
        expect(last?.[0]?.sends).toBeGreaterThanOrEqual(before - 1);
      }
    });
    expect(reader.view.lastSends(Infinity).map((send) => send.sends)).toEqual(
      Array.from({ length: ROTATIONS + 1 }, (_, index) => index + 1),
    );
  });

  it('a listing has every file that there was when it began', async () => {
    const list = async (): Promise<void> => {
      const before = sends;
      expect((await listFiles(folder.path())).length).toBeGreaterThanOrEqual(before);
    };
    await readBeside(async () => {
      await Promise.all(Array.from({ length: 3 }, list));
    });
  });

  it('an audit finds nothing missing, and every send is read once', async () => {
    await readBeside(async () => {
      expect((await verifyJournal(folder.dir, 1))?.faults).toEqual([]);
      const read: number[] = [];
      for await (const item of (await readJournal(folder.dir, 1))?.items() ?? [])
        if ('sends' in item && 'payoutId' in item) read.push(item.sends);
      expect(read).toEqual(read.map((_, index) => index + 1));
    });
  });
});
