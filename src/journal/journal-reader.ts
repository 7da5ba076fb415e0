import type { HeldLines } from './control-view.js';
import { isMissing, type JournalFile, journalPath, listFiles, readLines } from './journal-files.js';
import { identify, isControlLine, type JournalItem } from './journal-line.js';
import { isExpired, latestExpiry } from './journal-retention.js';
import { JournalView } from './journal-view.js';
import { hashLine, LineChain } from './line-chain.js';
import { parseLine, parseWrittenLine, type StoredLine } from './parse-line.js';
import { JournalDamagedError, type ReadableJournal } from './send-journal.js';

/** How far this process has read and written: the file, its size then, the end of its last whole line. */
interface Position {
  readonly inode: number;
  size: number;
  end: number;
}

interface Reading {
  readonly view: JournalView;
  readonly chain: LineChain;
  position: Position | undefined;
  readonly progress: { lines: number };
}

/** Single sends are held for the last two files. */
const RECENT_FILES = 2;

export class JournalReader {
  readonly #path: string;
  readonly #held: HeldLines;
  readonly #progress = { lines: 0 };
  #reading: Reading;

  constructor(path: string, held: HeldLines = {}) {
    this.#path = path;
    this.#held = held;
    this.#reading = startReading(held, this.#progress);
  }

  /** Lines read so far. While the number grows, the disk answers. */
  get linesRead(): number {
    return this.#progress.lines;
  }

  get view(): JournalView {
    return this.#reading.view;
  }

  get position(): Readonly<Position> | undefined {
    return this.#reading.position;
  }

  get tips(): readonly string[] {
    return this.#reading.chain.tips;
  }

  /**
   * Reads what any process added since the last read; at first, everything.
   * @throws JournalDamagedError if lines read before are gone or changed
   * @throws UnsupportedFormatError; Error if files cannot be read or a line is invalid
   */
  async catchUp(): Promise<void> {
    const files = await listFiles(this.#path);
    const { position } = this.#reading;
    if (position === undefined) {
      this.#reading = await this.#readAll(files);
      return;
    }
    const index = files.findIndex(({ inode }) => inode === position.inode);
    const [present, ...later] = files.slice(index);
    if (index === -1 || present === undefined) {
      await this.#readReplaced(files);
    } else if (present.size < position.end) {
      throw damaged(`${present.path} was cut off`);
    } else {
      await this.#readOn(files, [present, ...later], position.end);
    }
  }

  /** The appended bytes may not be on disk yet. */
  noteWritten(bytes: number): void {
    if (this.#reading.position !== undefined) this.#reading.position.size += bytes;
  }

  /** The appended bytes are on disk. @param size - of the file then */
  noteSynced(stored: StoredLine, text: string, size: number): void {
    const { view, chain, position } = this.#reading;
    // If another process appended in between, its line must still be read.
    if (position?.size === size) position.end = size;
    view.note(stored.line);
    chain.add(hashLine(text), stored);
    chain.trim();
  }

  async #readOn(files: readonly JournalFile[], [present, ...later]: JournalFile[], end: number): Promise<void> {
    if (present === undefined) return;
    try {
      await readFile(this.#reading, present, end);
      for (const file of later) {
        startFile(this.#reading);
        await readFile(this.#reading, file, 0);
      }
      this.#reading.chain.trim();
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      // A process that was stopped for long follows a line that this one has forgotten.
      this.#reading = await this.#readAll(files);
    }
  }

  /** The present file was replaced. The new files must contain what the old one did. */
  async #readReplaced(files: readonly JournalFile[]): Promise<void> {
    const before = this.#reading.view;
    const last = before.lastSends(1)[0];
    const reading = await this.#readAll(files);
    const isSame = reading.view.journalId === before.journalId && (last === undefined || reading.view.has(last));
    if (!isSame || files.length === 0) {
      throw damaged(files.length === 0 ? `${this.#path} was deleted` : `${this.#path} was replaced by another file`);
    }
    this.#reading = reading;
  }

  /** Of older files, only what control needs is held. Expired files are not read; an adoption reads them. */
  async #readAll(files: readonly JournalFile[]): Promise<Reading> {
    const reading = startReading(this.#held, this.#progress);
    const [recentFrom, now] = [files.length - RECENT_FILES, Date.now()];
    let isSkipping = true;
    for (const [index, file] of files.entries()) {
      const isRecent = index >= recentFrom;
      // Skips only from the start: each file names the one before it, so no gap is allowed.
      isSkipping &&= !isRecent && isExpired(file, now);
      if (isSkipping) {
        reading.view.control.skip(latestExpiry(file));
        continue;
      }
      startFile(reading);
      try {
        await readFile(reading, file, 0, isRecent);
      } catch (error) {
        // Another process has just removed the old file.
        if (isMissing(error) && !isRecent) return this.#readAll(await listFiles(this.#path));
        throw error;
      }
    }
    reading.chain.trim();
    return reading;
  }
}

function startReading(held: HeldLines, progress: Reading['progress']): Reading {
  return { view: new JournalView(held), chain: new LineChain(), position: undefined, progress };
}

function startFile({ view, chain }: Reading): void {
  view.startFile();
  chain.startFile();
}

/** @param isRecent - its single sends are held, too */
async function readFile(reading: Reading, file: JournalFile, from: number, isRecent = true): Promise<void> {
  const { path, inode, size } = file;
  const { view, chain, progress } = reading;
  let number = 0;
  let position = from;
  for await (const { text, end } of readLines(file, from)) {
    number += 1;
    progress.lines += 1;
    const location = from === 0 ? `${path}:${number}` : `${path}, byte ${position}`;
    position = end;
    const stored = isRecent ? parseLine(text, location) : parseWrittenLine(text, location);
    if (stored === undefined) continue;
    failOn(chain.add(hashLine(text), stored), location);
    if (isRecent) view.note(stored.line);
    else view.control.note(stored.line);
  }
  reading.position = { inode, size: Math.max(size, position), end: position };
}

function failOn(fault: string | undefined, location: string): void {
  if (fault === undefined) return;
  throw new JournalDamagedError(
    `The send journal was altered at ${location}: ${fault}. Put the files back as they were, from the disk's backup; nothing is sent without them. \`payouts audit verify\` shows every such line.`,
  );
}

function damaged(what: string): JournalDamagedError {
  return new JournalDamagedError(
    `The send journal was damaged while it was in use: ${what}. Put the file back as it was; nothing is sent without it.`,
  );
}

export interface StoredJournal extends ReadableJournal {
  items(): AsyncGenerator<JournalItem>;
}

/**
 * Reads the journal of an account without creating, changing or locking anything.
 * @param dir - the folder of the journals
 * @returns undefined if there is none
 * @throws UnsupportedFormatError if another version wrote it; Error if it cannot be read
 */
export async function readJournal(dir: string, platformId: number): Promise<StoredJournal | undefined> {
  const path = journalPath(dir, platformId);
  if ((await listFiles(path)).length === 0) return undefined;
  const reader = new JournalReader(path);
  await reader.catchUp();
  const { view } = reader;
  return {
    journalId: view.journalId ?? '',
    ledger: view.ledger,
    acts: view.control.actCount,
    peers: view.peers,
    knownReplicas: view.control.knownReplicas,
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
      const location = `${file.path}:${(number += 1)}`;
      const line = parseLine(text, location)?.line;
      if (line === undefined || 'v' in line || isControlLine(line)) continue;
      if ('outcome' in line) {
        const entry = waiting.get(identify(line));
        if (entry !== undefined) waiting.set(identify(line), { ...entry, outcome: line.outcome, outcomeAt: line.at });
        continue;
      }
      // Lines between sends wait too, because the order shows which send follows which.
      waiting.set('payoutId' in line ? identify(line) : location, line);
      for (const [key, oldest] of waiting) {
        if (waiting.size <= MAX_WAITING_ITEMS) break;
        waiting.delete(key);
        yield oldest;
      }
    }
  }
  yield* waiting.values();
}
