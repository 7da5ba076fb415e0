import { createHash, randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { stat, type FileHandle } from 'node:fs/promises';
import type { SendAttempt } from '../ledger/sender-ledger.js';
import {
  createFile,
  isMissing,
  journalPath,
  listFiles,
  makeFolder,
  openForAppending,
  readLines,
  refuseLink,
  removeOld,
  setAside,
  type JournalFile,
} from './journal-files.js';
import {
  JOURNAL_FORMAT,
  parseLine,
  type JournaledLedger,
  type JournaledOutcome,
  type JournaledSend,
  type JournalItem,
  type JournalEntry,
  type JournalLine,
  type JournalPeer,
} from './journal-line.js';
import { identify, JournalView } from './journal-view.js';
import { JournalDamagedError, type ReadableJournal, type SendJournal } from './send-journal.js';

/** About 45,000 sends with their outcomes. */
const ROTATE_AT_BYTES = 16 * 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface FileSendJournalOptions {
  /** The folder, made where it is missing. */
  readonly dir: string;
  readonly platformId: number;
  /** Files that were full are kept for this many days, for an adoption to read. @defaultValue as long as they are there */
  readonly keepDays?: number;
  /** Told how long each write of a send took to be on disk, in ms. */
  readonly onSynced?: (durationMs: number) => void;
  /** Told when an outcome could not be noted. */
  readonly onTrouble?: (error: Error) => void;
}

/**
 * The send journal as a file of JSON lines, each send on disk (fsync) before its first byte leaves.
 *
 * One process at a time writes it, the one that holds the lease; single lines are appended, so a process that lost the
 * lease a moment ago can do no harm to them.
 */
export class FileSendJournal implements SendJournal {
  readonly #path: string;
  readonly #keepMs: number;
  readonly #onSynced: (durationMs: number) => void;
  readonly #onTrouble: (error: Error) => void;
  #view = new JournalView();
  #file: FileHandle | undefined;
  /** Up to where this process has read and written: the file, its size then, and the end of its last whole line. */
  #place: { inode: number; size: number; end: number } | undefined;
  /** What others had added was read on the way, when the file was opened again: it counts as theirs until `reload`. */
  #hasOthers = false;
  #mustReopen = false;
  /** The id of a journal of format 1 that is only looked at. */
  #former = '';
  /** Writes follow one another, outcomes too, for which nobody waits. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor({ dir, platformId, keepDays = Infinity, onSynced, onTrouble }: FileSendJournalOptions) {
    this.#path = journalPath(dir, platformId);
    this.#keepMs = keepDays * DAY_MS;
    this.#onSynced = onSynced ?? (() => undefined);
    this.#onTrouble = onTrouble ?? (() => undefined);
  }

  /**
   * Opens the journal of an account and reads it; where there is none, makes one.
   * @throws UnsupportedFormatError; Error when the folder or the file cannot be read and written, or a line other than a
   * torn last one makes no sense
   */
  static async open(options: FileSendJournalOptions): Promise<FileSendJournal> {
    await makeFolder(options.dir);
    const journal = new FileSendJournal(options);
    await refuseLink(journal.#path);
    try {
      if ((await listFiles(journal.#path)).length === 0) await journal.#create(randomId());
      await journal.ensureWritable();
    } catch (error) {
      await journal.close();
      throw error;
    }
    journal.#hasOthers = false;
    return journal;
  }

  /**
   * Reads the journal of an account for somebody who only looks: nothing is made, changed or opened for writing.
   * @returns undefined when there is none
   * @throws UnsupportedFormatError; Error when it is there but cannot be read
   */
  static async read(
    options: Pick<FileSendJournalOptions, 'dir' | 'platformId'>,
  ): Promise<(ReadableJournal & Pick<FileSendJournal, 'items'>) | undefined> {
    const journal = new FileSendJournal(options);
    if ((await listFiles(journal.#path)).length === 0) return undefined;
    await journal.reload();
    if (journal.#view.journalId === undefined) journal.#former = await journal.#formerId();
    return journal;
  }

  get journalId(): string {
    return this.#view.journalId ?? this.#former;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#view.ledger;
  }

  get peers(): readonly JournalPeer[] {
    return this.#view.peers;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#view.knows(payoutId, attempt);
  }

  knowsFromAnother(attempt: SendAttempt): boolean {
    return this.#view.knowsFromAnother(attempt);
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return this.#view.lastSends(limit);
  }

  /**
   * Every send that is kept, with what stands between them, the oldest first, from disk: memory holds a few at a time.
   * @throws Error when a line makes no sense
   */
  async *items(): AsyncGenerator<JournalItem> {
    const waiting = new Map<string, JournalItem>();
    for (const { path } of await listFiles(this.#path)) {
      let number = 0;
      for await (const { text } of readLines(path, 0)) {
        const place = `${path}:${(number += 1)}`;
        const line = parseLine(text, place);
        if (line === undefined || 'v' in line) continue;
        if ('outcome' in line) {
          const entry = waiting.get(identify(line));
          if (entry !== undefined) waiting.set(identify(line), { ...entry, outcome: line.outcome });
          continue;
        }
        // What stands between sends waits with them: the order tells which send follows which.
        waiting.set('payoutId' in line ? identify(line) : place, line);
        // An outcome stands a few lines behind its send.
        for (const [key, oldest] of waiting) {
          if (waiting.size <= MAX_WAITING_ITEMS) break;
          waiting.delete(key);
          yield oldest;
        }
      }
    }
    yield* waiting.values();
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#inTurn(async () => this.#write(ledger));
  }

  async notePeers(peers: readonly JournalPeer[]): Promise<void> {
    await this.#inTurn(async () =>
      this.#write({ peers: peers.map(({ journalId, host, dir }) => ({ journalId, host, dir })) }),
    );
  }

  async append(send: JournaledSend): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#view.ledger === undefined) throw new Error('The journal is bound to no ledger');
      const startedAt = performance.now();
      await this.#write(send);
      this.#onSynced(performance.now() - startedAt);
      // A process that has not heard of the next file must not set that aside in turn.
      if ((this.#place?.size ?? 0) > ROTATE_AT_BYTES && (await this.#isPresent())) await this.#rotate();
    });
  }

  noteOutcome({ payoutId, attempt, token }: SendAttempt, outcome: JournaledOutcome, at: number): void {
    void this.#inTurn(async () => this.#write({ payoutId, attempt, token, outcome, at })).catch((error: unknown) => {
      this.#onTrouble(error as Error);
    });
  }

  async changedByOthers(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#hasOthers || this.#place === undefined) return true;
      const present = await this.#findPresent();
      return present?.size !== this.#place.size || present.ino !== this.#place.inode;
    });
  }

  async reload(): Promise<void> {
    await this.#inTurn(async () => {
      // The process that added to it may have begun a new file: the next write opens the present one.
      this.#mustReopen = true;
      await this.#catchUp();
      this.#hasOthers = false;
    });
  }

  async ensureWritable(): Promise<void> {
    await this.#inTurn(async () => this.#open());
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {
      await this.#file?.close();
      this.#file = undefined;
    });
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #open(): Promise<void> {
    if (this.#file !== undefined && !this.#mustReopen) return;
    await this.#file?.close().catch(() => undefined);
    this.#file = undefined;
    const before = this.#place;
    await this.#catchUp();
    // The process that set the full file aside was interrupted before the next one was made.
    if (!(await this.#isThere())) await this.#create(this.#view.journalId ?? (await this.#formerId()));
    this.#file = await openForAppending(this.#path);
    await this.#catchUp();
    const { inode, size } = this.#place ?? {};
    if (before !== undefined && (before.inode !== inode || before.size !== size)) this.#hasOthers = true;
    this.#mustReopen = false;
    if (this.#view.journalId === undefined) {
      await this.#write({ v: JOURNAL_FORMAT, journalId: await this.#formerId() });
    }
    await removeOld(this.#path, Date.now() - this.#keepMs);
  }

  async #isThere(): Promise<boolean> {
    return (await this.#findPresent()) !== undefined;
  }

  /** Whether the file that this process reads and writes is the present one. */
  async #isPresent(): Promise<boolean> {
    return (await this.#findPresent())?.ino === this.#place?.inode;
  }

  /** The present file as it is now; undefined where there is none. */
  async #findPresent(): Promise<Stats | undefined> {
    try {
      return await stat(this.#path);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** The id of a journal of format 1, which had none: every process makes the same of it. */
  async #formerId(): Promise<string> {
    const [oldest] = await listFiles(this.#path);
    for await (const { text } of readLines(oldest?.path ?? this.#path, 0)) {
      return createHash('sha256').update(text).digest('hex').slice(0, ID_LENGTH);
    }
    return randomId();
  }

  async #create(journalId: string): Promise<void> {
    const { ledger } = this.#view;
    const lines: JournalLine[] = [{ v: JOURNAL_FORMAT, journalId }, ...(ledger === undefined ? [] : [ledger])];
    await createFile(this.#path, lines.map(toLine).join(''));
  }

  /**
   * Reads what was added since the last look, by whomever; everything, where there was none.
   * @throws JournalDamagedError when what was read before is not there any more
   */
  async #catchUp(): Promise<void> {
    const files = await listFiles(this.#path);
    const place = this.#place;
    if (place === undefined) {
      await this.#readAll(files);
      return;
    }
    const index = files.findIndex(({ inode }) => inode === place.inode);
    const [present, ...later] = files.slice(index);
    if (index === -1 || present === undefined) {
      await this.#readAnew(files);
    } else if (present.size < place.end) {
      throw this.#damaged(`${present.path} was cut off`);
    } else {
      await this.#readFile(present, place.end);
      for (const file of later) {
        this.#view.startFile();
        await this.#readFile(file, 0);
      }
    }
  }

  async #readAll(files: readonly JournalFile[]): Promise<void> {
    this.#view = new JournalView();
    // Older files are for an adoption; the last two tell what was sent of late.
    for (const file of files.slice(-2)) {
      this.#view.startFile();
      await this.#readFile(file, 0);
    }
  }

  /** Another file than before stands in the place: it has to hold what was read before. */
  async #readAnew(files: readonly JournalFile[]): Promise<void> {
    const [before, place] = [this.#view, this.#place];
    const last = before.lastSends(1)[0];
    await this.#readAll(files);
    const isSame = this.#view.journalId === before.journalId && (last === undefined || this.#view.has(last));
    if (isSame && files.length > 0) return;
    [this.#view, this.#place] = [before, place];
    throw this.#damaged(
      files.length === 0 ? `${this.#path} was deleted` : `${this.#path} was replaced by another file`,
    );
  }

  #damaged(what: string): JournalDamagedError {
    return new JournalDamagedError(
      `The send journal was damaged while it was in use: ${what}. Put the file back as it was; nothing is sent without it.`,
    );
  }

  async #readFile({ path, inode, size }: JournalFile, from: number): Promise<void> {
    let number = 0;
    let position = from;
    for await (const { text, end } of readLines(path, from)) {
      number += 1;
      const line = parseLine(text, from === 0 ? `${path}:${number}` : `${path}, byte ${position}`);
      if (line !== undefined) this.#view.note(line);
      position = end;
    }
    this.#place = { inode, size: Math.max(size, position), end: position };
  }

  async #write(line: JournalLine): Promise<void> {
    await this.#open();
    if (this.#file === undefined || this.#place === undefined) throw new Error('The journal is closed');
    const bytes = Buffer.from(toLine(line));
    try {
      const { bytesWritten } = await this.#file.write(bytes);
      if (bytesWritten < bytes.length)
        throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`);
      this.#place.size += bytes.length;
      const [{ size }] = await Promise.all([this.#file.stat(), this.#file.datasync()]);
      // Where another process wrote in between, what it wrote is still to be read.
      if (size === this.#place.size) this.#place.end = size;
    } catch (error) {
      this.#mustReopen = true;
      throw new Error(`The send journal ${this.#path} cannot be written: ${(error as Error).message}`, {
        cause: error,
      });
    }
    this.#view.note(line);
  }

  /** Starts a new file; the full one stays beside it. */
  async #rotate(): Promise<void> {
    const full = this.#place;
    await this.#file?.close();
    this.#file = undefined;
    await setAside(this.#path);
    await this.#create(this.journalId);
    const setAsideFile = (await listFiles(this.#path)).find(({ inode }) => inode === full?.inode);
    // A process that adds to the old file from now on finds that it is not the present one any more.
    if (setAsideFile?.size !== full?.size) this.#hasOthers = true;
    await this.#catchUp();
    await this.#open();
  }
}

const ID_LENGTH = 12;
const MAX_WAITING_ITEMS = 200;

function randomId(): string {
  return randomBytes(ID_LENGTH / 2).toString('hex');
}

function toLine(line: JournalLine): string {
  return `${JSON.stringify(line)}\n`;
}
