import { appendFileSync, readSync } from 'node:fs';
import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoppedError } from '../../errors.js';
import type { NewPayout } from '../../ledger/payout.js';
import { splitLines } from './split-lines.js';

/** A checked payout, and the line on which it stood. */
export interface SpooledPayout {
  readonly line: number;
  readonly payout: NewPayout;
}

const WRITE_AT_BYTES = 256 * 1024;

/** More than any payout that the ledger's schema accepts. */
const MAX_PAYOUT_BYTES = 16 * 1024;

/**
 * The checked payouts of a file, kept on disk until the operator confirms. Exactly what was checked is enqueued, even if
 * the file changes meanwhile; the input is read only once, as stdin requires; and memory does not grow with it.
 *
 * The spool is an unlinked file: nothing is left of it however the process ends. Reads and writes are synchronous, since
 * they mostly hit the page cache, where a round trip to a worker thread would take longer than the operation.
 */
export class PayoutSpool {
  readonly #handle: FileHandle;
  readonly #readBuffer = Buffer.alloc(MAX_PAYOUT_BYTES);
  #pending: string[] = [];
  #pendingBytes = 0;
  #writtenBytes = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** @throws StoppedError when the folder for temporary files cannot be written */
  static async create(): Promise<PayoutSpool> {
    try {
      const dir = await mkdtemp(join(tmpdir(), 'payouts-import-'));
      const handle = await open(join(dir, 'payouts'), 'wx+', 0o600);
      await rm(dir, { recursive: true });
      return new PayoutSpool(handle);
    } catch (error) {
      throw spoolFailure(error);
    }
  }

  /** @returns the offset, for `readAt`. @throws StoppedError when it cannot be written */
  write({ line, payout }: SpooledPayout): number {
    const text = `${line} ${JSON.stringify(payout)}\n`;
    const offset = this.#writtenBytes + this.#pendingBytes;
    this.#pending.push(text);
    this.#pendingBytes += Buffer.byteLength(text);
    if (this.#pendingBytes >= WRITE_AT_BYTES) this.#flush();
    return offset;
  }

  /** The payout written at this offset. */
  readAt(offset: number): SpooledPayout {
    if (offset >= this.#writtenBytes) this.#flush();
    readSync(this.#handle.fd, this.#readBuffer, 0, MAX_PAYOUT_BYTES, offset);
    return parse(this.#readBuffer.toString('utf8', 0, this.#readBuffer.indexOf('\n')));
  }

  /** All payouts, in the order in which they were written. */
  async *read(): AsyncGenerator<SpooledPayout> {
    this.#flush();
    const bytes = this.#handle.createReadStream({ start: 0, autoClose: false });
    for await (const { text } of splitLines(bytes, Infinity)) yield parse(text);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #flush(): void {
    const text = this.#pending.join('');
    this.#writtenBytes += this.#pendingBytes;
    this.#pending = [];
    this.#pendingBytes = 0;
    try {
      appendFileSync(this.#handle.fd, text);
    } catch (error) {
      throw spoolFailure(error);
    }
  }
}

function parse(text: string): SpooledPayout {
  const end = text.indexOf(' ');
  return { line: Number(text.slice(0, end)), payout: JSON.parse(text.slice(end + 1)) as NewPayout };
}

function spoolFailure(error: unknown): StoppedError {
  return new StoppedError(
    `Cannot write the checked payouts to ${tmpdir()}: ${(error as Error).message}. Nothing was enqueued; set TMPDIR to another folder`,
  );
}
