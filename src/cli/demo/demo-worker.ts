import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { within } from '../../base/clock.js';

const END_WITHIN_MS = 3_000;
const SHOWN_LOG_LINES = 5;

interface DemoWorkerOptions {
  /** Complete: no variable of the user can point the process to another gateway. */
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
}

export class DemoWorker {
  readonly #options: DemoWorkerOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isWanted = false;
  #kills = 0;

  constructor(options: DemoWorkerOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get kills(): number {
    return this.#kills;
  }

  /** Exited although it should run. */
  get hasExited(): boolean {
    return this.#isWanted && this.#child === undefined;
  }

  readLogEnd(): string {
    const lines = readFileSync(this.#options.logFile, 'utf8').trimEnd().split('\n').slice(-SHOWN_LOG_LINES);
    return `The end of the worker's log:\n  ${lines.join('\n  ')}`;
  }

  start(): void {
    const log = openSync(this.#options.logFile, 'a');
    // The running program: works in a clone, an installed package and a global one.
    const program = [...process.execArgv, process.argv[1] ?? '', 'worker'];
    const child = spawn(process.execPath, program, { stdio: ['ignore', log, log], env: this.#options.environment });
    closeSync(log);
    this.#child = child;
    this.#isWanted = true;
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#child = undefined;
        resolve();
      };
      child.once('exit', end).once('error', end);
    });
  }

  /** Resolves after the exit. */
  async kill(): Promise<void> {
    this.#kills += 1;
    this.killNow();
    await this.#ended;
  }

  /** Does not wait: for use while this process exits. */
  killNow(): void {
    this.#isWanted = false;
    this.#child?.kill('SIGKILL');
  }

  /** Sends SIGTERM, then SIGKILL if the exit takes too long. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill('SIGTERM');
    await within(END_WITHIN_MS, this.#ended);
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }
}
