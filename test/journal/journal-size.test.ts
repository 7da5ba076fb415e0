import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { toChainedLines } from '../../src/journal/line-chain.js';
import { findBuiltProgram } from '../support/built-program.js';
import {
  aSend,
  HEADER,
  lastHash,
  LEDGER,
  makeJournalFolder,
  outcomeOf,
  toFileText,
  type JournalFolder,
} from './support/journal-folder.js';

/** What a worker that has other accounts to send for can spare while it reads the journal of one. */

const MEASURE = fileURLToPath(new URL('support/measure-reading.mjs', import.meta.url));
const FULL_BYTES = 16 * 1024 * 1024;
/** Node.js with this program, what is held of a full file, and about 40 MB to read it. */
const HEAP_MB = 56;

/** A payoutId and a few bytes for each send; with all that the lines say it would be several times as much. */
const HELD_BYTES_AT_MOST = 20 * 1024 * 1024;

interface Measured {
  readonly sends: number;
  readonly tookMs: number;
  /** The longest time for which nothing else could run. */
  readonly longestMs: number;
  /** Of the heap, when it was read. */
  readonly heldBytes: number;
}

let folder: JournalFolder;
let sends = 0;

beforeAll(async () => {
  folder = await makeJournalFolder();
  await writeFull();
});
afterAll(async () => folder.close());

async function writeFull(): Promise<void> {
  const file = await open(folder.path(), 'w');
  let text = toFileText([HEADER, LEDGER]);
  await file.write(text);
  for (let bytes = 0; bytes < FULL_BYTES;) {
    const step = Array.from({ length: 1_000 }, () => {
      const send = aSend(`order-2041-${(sends += 1)}`, sends);
      return [send, outcomeOf(send, 'accepted')];
    });
    text = toChainedLines(step.flat(), lastHash(text));
    bytes += (await file.write(text)).bytesWritten;
  }
  await file.close();
}

async function measure(how: 'open' | 'items'): Promise<Measured> {
  const args = ['--expose-gc', `--max-old-space-size=${HEAP_MB}`, MEASURE, folder.dir, how];
  findBuiltProgram();
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Measured;
}

describe('reading a full file', () => {
  it.each(['open', 'items'] as const)(
    'takes little memory and never holds up anything else for long: %s',
    async (how) => {
      // Another process may take the processor for a while: the best of several tries counts.
      const tries: Measured[] = [];
      do {
        tries.push(await measure(how));
      } while (tries.length < 3 && Math.min(...tries.map(({ longestMs }) => longestMs)) > 100);
      expect(new Set(tries.map((measured) => measured.sends))).toEqual(new Set([sends]));
      expect(Math.max(...tries.map(({ heldBytes }) => heldBytes))).toBeLessThan(HELD_BYTES_AT_MOST);
      // Reading a file as a whole holds up everything else for about the whole time.
      const shares = tries.map(({ longestMs, tookMs }) => longestMs / tookMs);
      expect(Math.min(...shares)).toBeLessThan(0.2);
    },
  );
});
