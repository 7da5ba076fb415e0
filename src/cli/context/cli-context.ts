import picocolors from 'picocolors';
import type { Environment } from '../../config.js';
import type { Logger } from '../../logger.js';
import type { Terminal } from './confirm.js';
import { createLineLogger } from './line-logger.js';
import { stopSignal } from './stop-signal.js';

/** What commands may use of the process they run in. Everything else comes as options. */
export interface CliContext {
  /** For `readConfig` only. */
  readonly environment: Environment;
  /** Colours for stdout; without effect where it is not a terminal, or NO_COLOR is set. */
  readonly colours: ReturnType<typeof picocolors.createColors>;
  /** Warnings as plain lines on stderr. */
  readonly logger: Logger;
  /** Writes a result to stdout, line breaks included. */
  readonly write: (text: string) => void;
  /** Writes a result to stdout as one line of JSON. */
  readonly writeJson: (value: unknown) => void;
  /** Writes progress or a remark to stderr, line breaks included. */
  readonly writeError: (text: string) => void;
  /** Where the operator is asked to confirm. */
  readonly terminal: Terminal;
  /** For a command that runs until it is stopped: aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly stopSignal: () => AbortSignal;
}

/** The context of this process. */
export function createProcessContext(): CliContext {
  const { env: environment, stdout, stderr } = process;
  // The reader of a pipe (`payouts list | head`) may stop reading early, which is no failure.
  stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  // A full disk or a closed pipe on stderr must not make a command fail that did its work.
  stderr.on('error', () => undefined);
  const plain = !stdout.isTTY || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  const writeError = (text: string): void => void stderr.write(text);
  return {
    environment,
    get terminal() {
      return { input: process.stdin, output: stderr };
    },
    colours: picocolors.createColors(!plain),
    logger: createLineLogger(writeError),
    write: (text) => void stdout.write(text),
    writeJson: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
    writeError,
    stopSignal,
  };
}
