import { mkdir, open, readFile, rename, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { JournaledLedger, JournaledSend, JournalView, SendJournal } from './send-journal.js';

const ledgerLine = z.object({ ledgerId: z.string(), epoch: z.int(), sends: z.int() });
const sendLine = z.object({
  payoutId: z.string(),
  attempt: z.int(),
  epoch: z.int(),
  sends: z.int(),
  at: z.number(),
  request: z.object({
    paymentId: z.int(),
    amount: z.string(),
    addressTo: z.string(),
    symbol: z.string().exactOptional(),
  }),
});
const journalLine = z.union([sendLine, ledgerLine]);

/** About 150,000 sends. The file before it is kept too; what is older than that, the ledger's count of sends guards alone. */
const ROTATE_AT_BYTES = 32 * 1024 * 1024;

export interface FileSendJournalOptions {
  /** The folder, made where it is missing. */
  readonly dir: string;
  readonly platformId: number;
  /** Told how long each write took to be on disk, in ms. */
  readonly onSynced?: (durationMs: number) => void;
}

/**
 * The send journal as a file of JSON lines, each on disk (fsync) before the send that it announces.
 *
 * One process at a time writes it, the one that holds the lease; single lines are appended, so a process that lost the
 * lease a moment ago can do no harm to them.
 */
export class FileSendJournal implements SendJournal {
  readonly #path: string;
  readonly #onSynced: (durationMs: number) => void;
  #file: FileHandle | undefined;
  /** Of the file as far as this process has read and written it. */
  #size = 0;
  /** Which file that was: one that another process has rotated may happen to have the same size. */
  #inode: number | undefined;
  /** What others had added was read on the way, when the file was opened again: it counts as theirs until `reload`. */
  #hasOthers = false;
  #mustReopen = false;
  #ledger: JournaledLedger | undefined;
  #sends = new Map<string, JournaledSend>();

  private constructor(path: string, onSynced: (durationMs: number) => void) {
    this.#path = path;
    this.#onSynced = onSynced;
  }

  /**
   * Opens the journal of an account and reads it.
   * @throws Error when the folder or the file cannot be read and written, or a line other than a torn last one makes no sense
   */
  static async open({ dir, platformId, onSynced = () => undefined }: FileSendJournalOptions): Promise<FileSendJournal> {
    await mkdir(dir, { recursive: true });
    const journal = new FileSendJournal(join(dir, `${platformId}.journal`), onSynced);
    try {
      await journal.ensureWritable();
    } catch (error) {
      await journal.close();
      throw error;
    }
    journal.#hasOthers = false;
    return journal;
  }

  /**
   * Reads the journal of an account for somebody who only looks: nothing is made, opened for writing or mended.
   * @throws Error when it is there but cannot be read, or a line other than a torn last one makes no sense
   */
  static async read({ dir, platformId }: Pick<FileSendJournalOptions, 'dir' | 'platformId'>): Promise<JournalView> {
    const journal = new FileSendJournal(join(dir, `${platformId}.journal`), () => undefined);
    await journal.reload();
    return journal;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#ledger;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#sends.has(toKey(payoutId, attempt));
  }

  lastSends(limit: number): readonly JournaledSend[] {
    return [...this.#sends.values()].slice(-limit);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#write({ ...ledger });
    this.#ledger = ledger;
  }

  async append(send: JournaledSend): Promise<void> {
    if (this.#ledger === undefined) throw new Error('The journal is bound to no ledger');
    await this.#write({ ...send });
    this.#note(send);
    if (this.#size > ROTATE_AT_BYTES) await this.#rotate(this.#ledger);
  }

  async changedByOthers(): Promise<boolean> {
    const { size, ino } = await stat(this.#path);
    return this.#hasOthers || size !== this.#size || ino !== this.#inode;
  }

  async reload(): Promise<void> {
    // The process that added to it may have begun a new file: the next write opens the present one.
    this.#mustReopen = true;
    await this.#read();
    this.#hasOthers = false;
  }

  async #read(): Promise<void> {
    this.#ledger = undefined;
    this.#sends = new Map();
    // Asked before the file is read: whoever rotates it in between is noticed.
    this.#inode = await readInode(this.#path);
    for (const path of [previous(this.#path), this.#path]) {
      const bytes = await readIfThere(path);
      for (const line of parseLines(bytes.toString(), path)) {
        if ('payoutId' in line) this.#note(line);
        else this.#ledger = line;
      }
      this.#size = bytes.length;
    }
  }

  async ensureWritable(): Promise<void> {
    if (this.#file !== undefined && !this.#mustReopen) return;
    await this.#file?.close().catch(() => undefined);
    // Read access too, so that the line that a crash tore can be told from a whole one.
    const file = await open(this.#path, 'a+');
    this.#file = file;
    await endTornLine(file, (await file.stat()).size);
    await file.sync();
    await syncFolder(this.#path);
    const [size, inode] = [this.#size, this.#inode];
    await this.#read();
    if (this.#size !== size || (inode !== undefined && this.#inode !== inode)) this.#hasOthers = true;
    this.#mustReopen = false;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  #note(send: JournaledSend): void {
    this.#sends.set(toKey(send.payoutId, send.attempt), send);
    if (this.#ledger === undefined) return;
    const { ledgerId, epoch, sends } = this.#ledger;
    this.#ledger = { ledgerId, epoch: Math.max(epoch, send.epoch), sends: Math.max(sends, send.sends) };
  }

  async #write(line: object): Promise<void> {
    await this.ensureWritable();
    if (this.#file === undefined) throw new Error('The journal is closed');
    const startedAt = performance.now();
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    try {
      const { bytesWritten } = await this.#file.write(bytes);
      if (bytesWritten < bytes.length)
        throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`);
      await this.#file.datasync();
    } catch (error) {
      this.#mustReopen = true;
      throw new Error(`The send journal ${this.#path} cannot be written: ${(error as Error).message}`, {
        cause: error,
      });
    }
    this.#size += bytes.length;
    this.#onSynced(performance.now() - startedAt);
  }

  /** Starts a new file; the one before it stays beside it and is still read. */
  async #rotate(ledger: JournaledLedger): Promise<void> {
    await this.close();
    await rename(this.#path, previous(this.#path));
    // Asked after the renaming: who adds to the old file from now on finds that it is not the present one any more.
    if ((await stat(previous(this.#path))).size !== this.#size) this.#hasOthers = true;
    [this.#size, this.#inode] = [0, undefined];
    await this.bind(ledger);
    await this.#read();
  }
}

function toKey(payoutId: string, attempt: number): string {
  return `${payoutId} ${attempt}`;
}

function previous(path: string): string {
  return `${path}.1`;
}

type JournalLine = z.output<typeof journalLine>;

function parseLines(text: string, path: string): JournalLine[] {
  const lines = text.split('\n');
  // Without a line break behind it, the last line was torn by a crash before its send: it announces nothing.
  lines.pop();
  return lines.flatMap((line, index) => parseLine(line, `${path}:${index + 1}`));
}

/** A torn line that a later start ended with a line break is recognised by its mark. */
const TORN_MARK = ' torn';

function parseLine(line: string, place: string): JournalLine[] {
  if (line === '' || line.endsWith(TORN_MARK)) return [];
  try {
    return [journalLine.parse(JSON.parse(line))];
  } catch (error) {
    throw new Error(
      `The send journal cannot be read at ${place}. Nothing may be sent without it; see docs/operations.md.`,
      {
        cause: error,
      },
    );
  }
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

async function readInode(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function endTornLine(file: FileHandle, size: number): Promise<void> {
  if (size === 0) return;
  const last = Buffer.alloc(1);
  await file.read(last, 0, 1, size - 1);
  if (last.toString() !== '\n') await file.write(`${TORN_MARK}\n`);
}

/** A new file is only safe once its folder is on disk too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(join(path, '..'), 'r');
  try {
    if ((await stat(path)).isFile()) await folder.sync();
  } finally {
    await folder.close();
  }
}
