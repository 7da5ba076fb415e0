import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { within } from '../../clock.js';

const END_WITHIN_MS = 3_000;
const SHOWN_LOG_LINES = 5;

export interface DemoWorkerOptions {
  /** All that the process is given: nothing of the person's own environment can lead it to another gateway. */
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
}

/** `payouts worker` as a process of its own, which can be killed and started again. */
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

  /** How many times it was killed with SIGKILL. */
  get kills(): number {
    return this.#kills;
  }

  /** Whether it is not running although it should. */
  get endedByItself(): boolean {
    return this.#isWanted && this.#child === undefined;
  }

  /** The last lines of its log, for an error message. */
  readLogEnd(): string {
    const lines = readFileSync(this.#options.logFile, 'utf8').trimEnd().split('\n').slice(-SHOWN_LOG_LINES);
    return `The end of the worker's log:\n  ${lines.join('\n  ')}`;
  }

  start(): void {
    const log = openSync(this.#options.logFile, 'a');
    // The very program that runs now, so that the demo works from a clone, an installed package and a global one.
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

  /** SIGKILL: it gets no chance to finish anything. Resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#kills += 1;
    this.killNow();
    await this.#ended;
  }

  /** As `kill`, without waiting: for a process that is about to exit. */
  killNow(): void {
    this.#isWanted = false;
    this.#child?.kill('SIGKILL');
  }

  /** Ends it in good order, or with SIGKILL when that takes too long. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill('SIGTERM');
    await within(END_WITHIN_MS, this.#ended);
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }
}
