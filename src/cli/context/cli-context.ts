import { randomInt } from 'node:crypto';
import picocolors from 'picocolors';
import type { Environment } from '../../base/config.js';
import type { Logger } from '../../base/logger.js';
import { toJsonLine, toPlainLines, toPlainText } from '../../base/plain-text.js';
import type { Terminal } from './confirm.js';

/** What commands may use of the process they run in. Everything else comes as options. */
export interface CliContext {
  /** For `readConfig` only. */
  readonly environment: Environment;
  /** Colours for stdout; without effect where it is not a terminal, or NO_COLOR is set. */
  readonly colours: ReturnType<typeof picocolors.createColors>;
  /** Warnings as plain lines on stderr. */
  readonly logger: Logger;
  /** Writes a result to stdout, line breaks included: every text, whoever wrote it, becomes plain there. */
  readonly write: (text: string) => void;
  /** Writes a result to stdout as one line of JSON. */
  readonly writeJson: (value: unknown) => void;
  /** Writes CSV to stdout: to a file or a pipe as the data is, to a terminal as plain text. */
  readonly writeCsv: (text: string) => void;
  /** Writes progress or a remark to stderr, line breaks included. */
  readonly writeError: (text: string) => void;
  /** Where the operator is asked to confirm. */
  readonly terminal: Terminal;
  /** For a command that runs until it is stopped: aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly stopSignal: () => AbortSignal;
}

/** Where a command's output ends up. */
interface OutputStreams {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  readonly isColoured: boolean;
}

/** What commands write with: the one place that decides which characters reach a terminal. */
type CommandOutput = Pick<CliContext, 'colours' | 'logger' | 'write' | 'writeJson' | 'writeCsv' | 'writeError'>;

/**
 * Shows what others wrote as plain text: of control and direction characters only line breaks stay, and colours that
 * {@link CommandOutput.colours} made.
 */
export function createOutput({ writeOut, writeErr, isTerminal, isColoured }: OutputStreams): CommandOutput {
  // Nobody else can write such a colour: a parameter that no terminal knows, another one in each process.
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

/** The same colours, whose sequences end with `;MARKm`: as long on a terminal as before, so that tables fit. */
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

/** The context of this process. */
export function createProcessContext(): CliContext {
  const { env: environment, stdout, stderr } = process;
  // The reader of a pipe (`payouts list | head`) may stop reading early, which is no failure.
  stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  // A full disk or a closed pipe on stderr must not make a command fail that did its work.
  stderr.on('error', () => undefined);
  const isPlain = !stdout.isTTY || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  return {
    environment,
    terminal: {
      // Opened by the first command that asks or reads.
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

/** A logger that writes warnings and errors as plain lines, for a command's stderr. */
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

/** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
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
 * Keeps SIGHUP, which a closed terminal sends too, from ending a process that serves others.
 * @param reload - called at each SIGHUP. @defaultValue what the command reads again, it reads again by itself
 */
export function outliveHangup(reload: () => void = noReload): void {
  process.removeListener('SIGHUP', noReload);
  process.on('SIGHUP', reload);
}

/** Whether a thread is in a system call, such as one to a disk, or the look-up of a name, that does not return. */
function hangs(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name));
}

/** Ends the process. `process.exit` waits for a thread that hangs; then only a signal ends it, and shows in place of the code. */
export function exitNow(code: number | string | null | undefined = process.exitCode): void {
  if (!hangs()) process.exit(code);
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}

const HANGS_FOR_MS = 1_000;

/** Ends a process whose work is done, and that only waits for a thread that hangs, once its output was read. */
export function endDespiteHang(): void {
  setInterval(() => {
    if (hangs() && process.stdout.writableLength + process.stderr.writableLength === 0) exitNow();
  }, HANGS_FOR_MS).unref();
}
