import { journalPath, listFiles, readLines } from './journal-files.js';
import { formerId } from './journal-id.js';
import { identify, isControlLine, type JournalItem } from './journal-line.js';
import { JournalReader } from './journal-reader.js';
import { parseLine } from './parse-line.js';
import type { ReadableJournal } from './send-journal.js';

/** A journal that is read and not written, with all that is kept of it. */
export interface StoredJournal extends ReadableJournal {
  /** See {@link readItems}. */
  items(): AsyncGenerator<JournalItem>;
}

/**
 * Reads the journal of an account without making, changing or locking anything.
 * @param dir - the folder of the journals
 * @returns undefined when there is none
 * @throws UnsupportedFormatError when a newer version wrote it
 * @throws Error when it exists but cannot be read
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
 * Every send that is kept, with its outcome, and what stands between them, the oldest first. Read from disk: memory holds
 * a few at a time.
 * @throws Error when a line makes no sense
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
      // What stands between sends waits with them: the order tells which send follows which.
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
