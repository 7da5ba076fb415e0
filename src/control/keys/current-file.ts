import { InvalidConfigError } from '../../base/errors.js';
import { readTrustedBytes } from '../../base/trusted-file.js';

/**
 * Reads a file that decides what is sent and has no secrets. It rejects a private key before parsing, because errors
 * show values.
 * @param rule - follows "holds a private key"
 * @throws Error with the reason
 */
export function readPublicBytes(path: string, rule: string): Buffer {
  const bytes = readTrustedBytes(path);
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(bytes.toString('latin1'))) return bytes;
  throw new Error(`holds a private key${rule}`);
}

/** @throws InvalidConfigError with each problem under the setting that names the file */
export function readNamedBy<Content>(field: string, file: string, read: () => Content): Content {
  try {
    return read();
  } catch (error) {
    const messages =
      error instanceof InvalidConfigError
        ? error.problems.map((problem) => `${file}: ${problem.field} ${problem.message}`)
        : [`${file} ${(error as Error).message}`];
    throw new InvalidConfigError(messages.map((message) => ({ field, message })));
  }
}

export class CurrentFile<Content> {
  content: Content;
  /** Why the last reading failed: the content before it still counts. */
  trouble: string | undefined;
  readonly #read: () => Content;

  constructor(read: () => Content) {
    this.#read = read;
    this.content = read();
  }

  /** Reads the file again; an invalid one changes nothing. @returns whether it was read */
  reload(): boolean {
    try {
      this.content = this.#read();
      this.trouble = undefined;
      return true;
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      this.trouble = error.problems.map(({ message }) => message).join('; ');
      return false;
    }
  }
}
