import { randomInt } from 'node:crypto';
import picocolors from 'picocolors';
import type { Environment } from '../../base/config.js';
import type { Logger } from '../../base/logger.js';
import { toJsonLine, toPlainLines, toPlainText } from '../../base/plain-text.js';
import type { Terminal } from './confirm.js';

export interface CliContext {
  readonly environment: Environment;
  /** None without a terminal or with NO_COLOR. */
  readonly colours: ReturnType<typeof picocolors.createColors>;
  readonly logger: Logger;
  /** Result as plain text, with its line breaks. */
  readonly write: (text: string) => void;
  readonly writeJson: (value: unknown) => void;
  /** Unchanged to a file or pipe, as plain text to a terminal. */
  readonly writeCsv: (text: string) => void;
  /** Progress or a remark to stderr, with its line breaks. */
  readonly writeError: (text: string) => void;
  readonly terminal: Terminal;
  /** The arguments of Node with which this process was started. @defaultValue it is no process of its own */
  readonly program?: readonly string[];
  /** The first SIGINT or SIGTERM aborts it; a second one ends the process at once. */
  readonly stopSignal: () => AbortSignal;
}

interface OutputStreams {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  readonly isTerminal: boolean;
  readonly isColoured: boolean;
}

type CommandOutput = Pick<CliContext, 'colours' | 'logger' | 'write' | 'writeJson' | 'writeCsv' | 'writeError'>;

/**
 * The only place that decides which characters reach a terminal. It removes control and direction characters, except
 * line breaks and its own colours.
 */
export function createOutput({ writeOut, writeErr, isTerminal, isColoured }: OutputStreams): CommandOutput {
  // A random parameter: no terminal knows it, and no text from others contains it.
  const mark = String(randomInt(10 ** 9, 2 ** 47));
  const marked = new RegExp(`\\\\u\\{1b\\}\\[(\\d+);${mark}m`, 'g');
  const toShown = (text: string): string => toPlainLines(text).replace(marked, '\u001b[$1m');
  const writeError = (text: string): void => {
    writeErr(toShown(text));
  };
  return {
    colours: markColours(picocolors.createColors(isColoured), mark),
    logger: createLineLogger(writeError),
    write: (text) => {
      writeOut(toShown(text));
    },
    writeJson: (value) => {
      writeOut(toJsonLine(value));
    },
    writeCsv: (text) => {
      writeOut(isTerminal ? toPlainLines(text) : text);
    },
    writeError,
  };
}

/** Ends each colour with `;MARKm`. The width on a terminal stays, so tables fit. */
function markColours(colours: CliContext['colours'], mark: string): CliContext['colours'] {
  if (!colours.isColorSupported) return colours;
  const markCode = (code: string): string => code.replace('m', `;${mark}m`);
  const marked = Object.entries(colours).map(([name, format]: [string, boolean | ((text: string) => string)]) => {
    if (typeof format === 'boolean') return [name, format];
    const [open = '', close = ''] = format('|').split('|').map(markCode);
    return [name, (text: string | number) => `${open}${text}${close}`];
  });
  return Object.fromEntries(marked) as CliContext['colours'];
}

export function createProcessContext(): CliContext {
  const { env: environment, stdout, stderr } = process;
  // The reader of a pipe (`payouts list | head`) may stop early.
  stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  // A full disk or closed pipe on stderr must not fail a command that did its work.
  stderr.on('error', () => undefined);
  const isPlain = !stdout.isTTY || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  return {
    environment,
    program: [...process.execArgv, ...process.argv.slice(1)],
    terminal: {
      // The first command that asks or reads opens it.
      get input() {
        return process.stdin;
      },
      output: stderr,
    },
    ...createOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      isTerminal: stdout.isTTY,
      isColoured: !isPlain,
    }),
    stopSignal,
  };
}

function createLineLogger(writeError: (text: string) => void): Logger {
  const write = (fields: object, message: string): void => {
    const { reason, error = reason } = fields as { readonly reason?: string; readonly error?: string };
    writeError(`${toPlainText(`payouts: ${message}${error === undefined ? '' : ` (${error})`}`)}\n`);
  };
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: write,
    error: write,
    child: () => logger,
  };
  return logger;
}

function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (): void => {
    // Without a listener, a second signal ends the process.
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
    controller.abort();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  return controller.signal;
}

const noReload = (): void => undefined;

/**
 * Keeps SIGHUP, also sent by a closing terminal, from ending a long-running process.
 * @param reload - called at each SIGHUP. @defaultValue nothing: the command reloads by itself
 */
export function outliveHangup(reload: () => void = noReload): void {
  process.removeListener('SIGHUP', noReload);
  process.on('SIGHUP', reload);
}

/** Whether a thread may hang in a disk access or name look-up. */
function hangs(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name));
}

/** `process.exit` would wait for a hung thread. Then only a signal ends the process, and replaces the exit code. */
export function exitNow(code: number | string | null | undefined = process.exitCode): void {
  if (!hangs()) process.exit(code);
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}

const HANGS_FOR_MS = 1_000;

/** Ends a finished process that only waits for a hung thread, after its output was read. */
export function endDespiteHang(): void {
  setInterval(() => {
    if (hangs() && process.stdout.writableLength + process.stderr.writableLength === 0) exitNow();
  }, HANGS_FOR_MS).unref();
}
