import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoppedError } from '../../errors.js';
import type { ValidPayout } from '../../ledger/payout.js';
import { splitLines } from './split-lines.js';

/** A payout that was checked, and where it stood. */
export interface SpooledPayout {
  readonly line: number;
  readonly payout: ValidPayout;
}

const WRITE_AT_LENGTH = 256 * 1024;

/**
 * The checked payouts of a file, put by on disk until a person has agreed to them. So exactly what was checked is
 * enqueued, whatever becomes of the file meanwhile; it is read only once, as stdin can be; and no memory grows with it.
 *
 * The spool has no name, so that nothing is left of it however the process ends.
 */
export class PayoutSpool {
  readonly #handle: FileHandle;
  #pending: string[] = [];
  #pendingLength = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** @throws StoppedError when the system's folder for temporary files cannot be written */
  static async create(): Promise<PayoutSpool> {
    return explained(async () => {
      const dir = await mkdtemp(join(tmpdir(), 'payouts-import-'));
      const handle = await open(join(dir, 'payouts'), 'wx+', 0o600);
      await rm(dir, { recursive: true });
      return new PayoutSpool(handle);
    });
  }

  /** @param json - the payout. @throws StoppedError when it cannot be written */
  async write(line: number, json: string): Promise<void> {
    const text = `${line} ${json}\n`;
    this.#pending.push(text);
    this.#pendingLength += text.length;
    if (this.#pendingLength >= WRITE_AT_LENGTH) await this.#flush();
  }

  /** All payouts, in the order in which they were written. */
  async *read(): AsyncGenerator<SpooledPayout> {
    await this.#flush();
    const bytes = this.#handle.createReadStream({ start: 0, autoClose: false });
    for await (const { text } of splitLines(bytes, Infinity)) {
      const end = text.indexOf(' ');
      yield { line: Number(text.slice(0, end)), payout: JSON.parse(text.slice(end + 1)) as ValidPayout };
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #flush(): Promise<void> {
    const text = this.#pending.join('');
    this.#pending = [];
    this.#pendingLength = 0;
    await explained(async () => this.#handle.appendFile(text));
  }
}

async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new StoppedError(
      `The checked payouts could not be put by in ${tmpdir()}: ${(error as Error).message}. Nothing was enqueued; TMPDIR names another folder`,
    );
  }
}
