import { JournalUnavailableError } from '../base/errors.js';
import type { FileHandle } from 'node:fs/promises';
import { DAY_MS, within } from '../base/clock.js';
import { STORED_FORMAT } from '../base/stored-format.js';
import type { JournalHead, SendAttempt } from '../ledger/sender-ledger.js';
import type { ControlView } from './control-view.js';
import {
  createFile,
  findPresent,
  folderAdvice,
  journalPath,
  listFiles,
  makeFolder,
  openForAppending,
  randomId,
  refuseLink,
  setAside,
} from './journal-files.js';
import {
  type ActNote,
  type ActsLine,
  type CompleteNote,
  type HeaderLine,
  type JournaledLedger,
  type JournaledOutcome,
  type JournalItem,
  type JournalLine,
  type JournalPeer,
  type PausedLine,
  type RatesLine,
  type RejectionNote,
  type ReplicasNote,
  type SeenLine,
  type SendLine,
} from './journal-line.js';
import { JournalReader, readItems } from './journal-reader.js';
import { JournalRetention, removeFiles } from './journal-retention.js';
import { type JournalView, ViewedJournal } from './journal-view.js';
import { toChainedLines, toChainedText } from './line-chain.js';
import { requireReadable } from './parse-line.js';
import type { ControlJournal } from './control-journal.js';
import type { SendJournal } from './send-journal.js';

/** About 27,000 sends with their outcomes, or 17,000 signed ones. */
const ROTATE_AT_BYTES = 16 * 1024 * 1024;
/**
 * The disk gets this many checks in a row to answer. A single time limit would also count the time this process was
 * stopped.
 */
const STALL_LOOKS = 20;
const STALL_LOOK_MS = 250;

type IsGivenUp = () => boolean;

export interface FileSendJournalOptions {
  readonly dir: string;
  readonly platformId: number;
  /** Days for which full files are kept, for an adoption to read. @defaultValue forever */
  readonly keepDays?: number;
  /**
   * Payouts must be signed. The journal then also holds unsigned sends that may have a valid intent. @defaultValue
   * false
   */
  readonly holdsUnsigned?: boolean;
  /** There is a policy, so the journal holds spends. @defaultValue false */
  readonly holdsSpends?: boolean;
  /** Called with the duration (ms) of each write of a send. */
  readonly onSynced?: (durationMs: number) => void;
  /** Called with the error if an outcome cannot be written. */
  readonly onTrouble?: (error: Error) => void;
}

/** An error of the file system, which names its call, by the setting that leads there. */
function explain(dir: string, error: NodeJS.ErrnoException): Error {
  if (error.syscall === undefined) return error;
  const message = `SEND_JOURNAL_DIR (journalDir): the folder "${dir}" cannot be used: ${error.message}. ${folderAdvice(error)}`;
  return new JournalUnavailableError(message, { cause: error });
}

/**
 * The send journal as a file of JSON lines. Each send is on disk (fsync) before its first byte leaves.
 *
 * Only the process that holds the lease writes. Single lines are appended, so a process that has just lost the lease
 * does no harm.
 */
export class FileSendJournal extends ViewedJournal implements SendJournal, ControlJournal {
  readonly #path: string;
  readonly #retention: JournalRetention;
  readonly #onSynced: (durationMs: number) => void;
  readonly #onTrouble: (error: Error) => void;
  readonly #reader: JournalReader;
  #file: FileHandle | undefined;
  /** Reopening read lines of others. They count as unread until `reload`. */
  #hasOthers = false;
  #mustReopen = false;
  #isStalled = false;
  /** Serializes all writes, also unawaited outcomes. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(options: FileSendJournalOptions) {
    super();
    const { dir, platformId, keepDays = Infinity, holdsUnsigned, holdsSpends, onSynced, onTrouble } = options;
    this.#path = journalPath(dir, platformId);
    this.#reader = new JournalReader(this.#path, { unsigned: holdsUnsigned, spends: holdsSpends });
    this.#retention = new JournalRetention(this.#path, keepDays * DAY_MS);
    this.#onSynced = onSynced ?? (() => undefined);
    this.#onTrouble = onTrouble ?? (() => undefined);
  }

  /**
   * Opens and reads the journal of an account, or creates it.
   * @throws UnsupportedFormatError; JournalUnavailableError if the folder cannot be made, or a file cannot be read or
   * written; Error if a line other than a torn last one is invalid
   */
  static async open(options: FileSendJournalOptions): Promise<FileSendJournal> {
    const journal = new FileSendJournal(options);
    try {
      await makeFolder(options.dir);
      await refuseLink(journal.#path);
      if ((await listFiles(journal.#path)).length === 0) await journal.#create(randomId());
      await journal.ensureWritable();
    } catch (error) {
      await journal.close();
      throw explain(options.dir, error as NodeJS.ErrnoException);
    }
    journal.#hasOthers = false;
    return journal;
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  get journalId(): string {
    return this.view.journalId ?? '';
  }

  get head(): JournalHead | undefined {
    const hash = this.#reader.tips.at(-1);
    return hash === undefined ? undefined : { journalId: this.journalId, hash, sends: this.ledger?.sends ?? 0 };
  }

  protected get view(): JournalView {
    return this.#reader.view;
  }

  items(): AsyncGenerator<JournalItem> {
    return readItems(this.#path);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#note(ledger);
  }

  async notePeers(peers: readonly JournalPeer[]): Promise<void> {
    await this.#note({ peers: peers.map(({ journalId, host, dir }) => ({ journalId, host, dir })) });
  }

  async notePaused({ at, reason }: PausedLine['paused']): Promise<void> {
    await this.#note({ paused: { at, reason } });
  }

  async noteResumed({ at, act }: ActNote): Promise<void> {
    await this.#note({ resumed: { at, act } });
  }

  async noteComplete({ at, by, reason }: CompleteNote): Promise<void> {
    await this.#note({ complete: { at, by, reason } });
  }

  async noteSeen({ at, addresses }: SeenLine['seen']): Promise<void> {
    await this.#note({ seen: { at, addresses } });
  }

  async noteReplicas({ at, count, names, lowered }: ReplicasNote): Promise<void> {
    await this.#note({ replicas: { at, count, names, ...(lowered && { lowered }) } });
  }

  async noteActs({ at, count, ended }: ActsLine['acts']): Promise<void> {
    await this.#note({ acts: { at, count, ended } });
  }

  async noteRates({ at, usd }: RatesLine['rates']): Promise<void> {
    await this.#note({ rates: { at, usd } });
  }

  async noteRejected(rejected: RejectionNote): Promise<void> {
    await this.#note({ rejected });
  }

  async noteUnrejected(unrejected: Pick<RejectionNote, 'payoutId' | 'rejection'>): Promise<void> {
    await this.#note({ unrejected });
  }

  async append(send: SendLine): Promise<void> {
    await this.#inTurn(async (isGivenUp) => {
      if (this.view.ledger === undefined) throw new Error('The journal is bound to no ledger');
      const startedAt = performance.now();
      await this.#write(send, isGivenUp);
      this.#onSynced(performance.now() - startedAt);
      const { size = 0, inode } = this.#reader.position ?? {};
      // A process that does not know the next file yet must not rotate that one.
      if (size > ROTATE_AT_BYTES && (await findPresent(this.#path))?.ino === inode) await this.#rotate();
    });
  }

  noteOutcome({ payoutId, attempt, token }: SendAttempt, outcome: JournaledOutcome, at: number): void {
    const line = { payoutId, attempt, token, outcome, at };
    // Even behind a hanging send: a late send is followed by its outcome.
    this.#queue = this.#queue
      .then(async () => this.#write(line))
      .catch((error: unknown) => {
        this.#onTrouble(error as Error);
      });
  }

  async changedByOthers(): Promise<boolean> {
    return this.#inTurn(async () => {
      const { position } = this.#reader;
      if (this.#hasOthers || position === undefined) return true;
      const present = await findPresent(this.#path);
      return present?.size !== position.size || present.ino !== position.inode;
    });
  }

  async reload(): Promise<void> {
    await this.#inTurn(async () => {
      this.#mustReopen = true;
      await this.#reader.catchUp();
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

  async #note(line: JournalLine): Promise<void> {
    await this.#inTurn(async (isGivenUp) => this.#write(line, isGivenUp));
  }

  /**
   * Runs one task at a time and waits while the disk answers. After that, no further step begins, but a hanging system
   * call may still take effect.
   */
  async #inTurn<Result>(work: (isGivenUp: IsGivenUp) => Promise<Result>): Promise<Result> {
    if (this.#isStalled) throw this.#stalled();
    let isGivenUp = false;
    const result = this.#queue.then(async () => work(() => isGivenUp)).catch(this.#nameDiskTrouble);
    const settled = result.then(
      () => true,
      () => true,
    );
    this.#queue = settled;
    let seen = this.#reader.linesRead;
    for (let looks = 0; looks < STALL_LOOKS; looks += 1) {
      if ((await within(STALL_LOOK_MS, settled)) === true) return result;
      if (this.#reader.linesRead !== seen) looks = 0;
      seen = this.#reader.linesRead;
    }
    isGivenUp = this.#isStalled = true;
    void settled.then(() => {
      this.#isStalled = false;
    });
    throw this.#stalled();
  }

  /** Not only the write of a line: the mark of a torn one, or a new file, may be what a full disk refuses. */
  readonly #nameDiskTrouble = (error: unknown): never => {
    const { code, syscall, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined || code === 'ENOENT') throw error;
    throw this.#unavailable(message, error);
  };

  #unavailable(message: string, cause: unknown): JournalUnavailableError {
    return new JournalUnavailableError(`The send journal ${this.#path} cannot be written: ${message}`, { cause });
  }

  #stalled(): Error {
    const seconds = (STALL_LOOKS * STALL_LOOK_MS) / 1_000;
    return new JournalUnavailableError(
      `The disk of the send journal ${this.#path} has not answered for ${seconds} s: nothing is sent until it does. Check the disk or its mount; then sending goes on by itself.`,
    );
  }

  async #open(): Promise<void> {
    if (this.#file !== undefined && !this.#mustReopen) return;
    await this.#file?.close().catch(() => undefined);
    this.#file = undefined;
    const before = this.#reader.position && { ...this.#reader.position };
    await this.#reader.catchUp();
    // A crash came between the rotation and the new file.
    if ((await findPresent(this.#path)) === undefined) await this.#create(this.view.journalId ?? randomId());
    this.#file = await this.#openPresent();
    const { inode, size } = this.#reader.position ?? {};
    if (before !== undefined && (before.inode !== inode || before.size !== size)) this.#hasOthers = true;
    this.#mustReopen = false;
    // A file without a whole line is as none.
    if (this.view.journalId === undefined) await this.#write(headerOf(randomId(), this.view.control));
    await this.#removeOld();
  }

  /** Opens the present file and reads what was added, so that the next line follows all lines read. */
  async #openPresent(): Promise<FileHandle> {
    for (;;) {
      const file = await openForAppending(this.#path);
      try {
        await this.#reader.catchUp();
        if ((await file.stat()).ino === this.#reader.position?.inode) return file;
      } catch (error) {
        await file.close();
        throw error;
      }
      await file.close();
    }
  }

  /** Removes files older than the retention. Their latest expiry is on disk before they are gone. */
  async #removeOld(): Promise<void> {
    const old = await this.#retention.findOld(Date.now());
    if (old.length === 0) return;
    const prunedUpTo = Math.max(...old.map(({ expiresAt }) => expiresAt));
    const { prunedUpTo: noted = 0 } = this.view.control.marksAt(0);
    if (prunedUpTo > noted) await this.#write({ ...headerOf(this.journalId, this.view.control), prunedUpTo });
    await removeFiles(old);
  }

  async #create(journalId: string): Promise<void> {
    await createFile(this.#path, toChainedLines(firstLines(journalId, this.view), this.#reader.tips));
  }

  async #write(line: JournalLine, isGivenUp: IsGivenUp = () => false): Promise<void> {
    await this.#open();
    if (isGivenUp()) throw this.#stalled();
    if (this.#file === undefined) throw new Error('The journal is closed');
    const prev = this.#reader.tips;
    const text = toChainedText(line, prev);
    requireReadable(line, text);
    const bytes = Buffer.from(`${text}\n`);
    try {
      const { bytesWritten } = await this.#file.write(bytes);
      if (bytesWritten < bytes.length)
        throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`);
      this.#reader.noteWritten(bytes.length);
      const [{ size }] = await Promise.all([this.#file.stat(), this.#file.datasync()]);
      this.#reader.noteSynced({ line, prev }, text, size);
    } catch (error) {
      this.#mustReopen = true;
      throw this.#unavailable((error as Error).message, error);
    }
  }

  async #rotate(): Promise<void> {
    const full = this.#reader.position && { ...this.#reader.position };
    // The next header repeats what an operator's command has just added to this file.
    await this.#reader.catchUp();
    await this.#file?.close();
    this.#file = undefined;
    await setAside(this.#path);
    await this.#create(this.journalId);
    const setAsideFile = (await listFiles(this.#path)).find(({ inode }) => inode === full?.inode);
    // A process that appends to the old file from now on sees that it is no longer the present one.
    if (setAsideFile?.size !== full?.size) this.#hasOthers = true;
    await this.#reader.catchUp();
    await this.#open();
  }
}

function headerOf(journalId: string, control: ControlView): HeaderLine {
  return { v: STORED_FORMAT, journalId, ...control.marksAt(Date.now()) };
}

/** Repeats the state of the whole journal, because earlier files may be removed. */
function firstLines(journalId: string, { ledger, control }: JournalView): JournalLine[] {
  return [
    headerOf(journalId, control),
    ...(ledger === undefined ? [] : [ledger]),
    ...(control.pause === undefined ? [] : [{ paused: control.pause }]),
    ...control.seenLines(),
    ...control.rejectedLines(),
    ...control.ratesLines(),
    ...control.replicasLines(),
    ...(control.actCount === 0 ? [] : [{ acts: { at: Date.now(), count: control.actCount, ended: [] } }]),
  ];
}
