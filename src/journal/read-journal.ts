import { journalPath, listFiles, readLines } from './journal-files.js';
import { formerId } from './journal-id.js';
import { identify, isControlLine, type JournalItem } from './journal-line.js';
import { JournalReader } from './journal-reader.js';
import { parseLine } from './parse-line.js';
import type { ReadableJournal } from './send-journal.js';

export interface StoredJournal extends ReadableJournal {
  items(): AsyncGenerator<JournalItem>;
}

/**
 * Reads the journal of an account without creating, changing or locking anything.
 * @param dir - the folder of the journals
 * @returns undefined if there is none
 * @throws UnsupportedFormatError if a newer version wrote it; Error if it cannot be read
 */
export async function readJournal(dir: string, platformId: number): Promise<StoredJournal | undefined> {
  const path = journalPath(dir, platformId);
  if ((await listFiles(path)).length === 0) return undefined;
  const reader = new JournalReader(path);
  await reader.catchUp();
  const { view } = reader;
  return {
    journalId: view.journalId ?? (await formerId(path)),
    ledger: view.ledger,
    peers: view.peers,
    lastSends: (limit) => view.lastSends(limit),
    items: () => readItems(path),
  };
}

/** An outcome is a few lines behind its send. */
const MAX_WAITING_ITEMS = 200;

/**
 * Every kept send with its outcome, and the lines between them, oldest first. Streams from disk.
 * @throws Error if a line is invalid
 */
export async function* readItems(path: string): AsyncGenerator<JournalItem> {
  const waiting = new Map<string, JournalItem>();
  for (const file of await listFiles(path)) {
    let number = 0;
    for await (const { text } of readLines(file, 0)) {
      const place = `${file.path}:${(number += 1)}`;
      const line = parseLine(text, place)?.line;
      if (line === undefined || 'v' in line || isControlLine(line)) continue;
      if ('outcome' in line) {
        const entry = waiting.get(identify(line));
        if (entry !== undefined) waiting.set(identify(line), { ...entry, outcome: line.outcome, outcomeAt: line.at });
        continue;
      }
      // Lines between sends wait too, because the order shows which send follows which.
      waiting.set('payoutId' in line ? identify(line) : place, line);
      for (const [key, oldest] of waiting) {
        if (waiting.size <= MAX_WAITING_ITEMS) break;
        waiting.delete(key);
        yield oldest;
      }
    }
  }
  yield* waiting.values();
}
