import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { within } from '../../../src/base/clock.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { endChild, hasEnded, startChild, untilEnded } from './child-processes.js';

const PRELOAD = new URL('under-chaos.mjs', import.meta.url).href;

/** After SIGTERM: a Redis that hangs is waited for, but not without an end. */
const ENDS_WITHIN_MS = 45_000;
const STARTS_WITHIN_MS = 5_000;

export interface WorkerHostOptions {
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Told what a worker must never do. */
  readonly onDefect: (defect: string) => void;
}

/** A host with a `payouts worker`, which is started again whenever it was ended. */
export class WorkerHost {
  readonly name: string;
  readonly #options: WorkerHostOptions;
  #child: ChildProcess;
  #startedAt = 0;
  #mayEnd = false;

  constructor(options: WorkerHostOptions) {
    this.name = options.name;
    this.#options = options;
    this.#child = this.#start();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async kill(): Promise<void> {
    this.#mayEnd = true;
    await endChild(this.#child);
  }

  /** SIGTERM: it must end by itself, and with 0. */
  async endInGoodOrder(): Promise<void> {
    // Killed or being ended already.
    if (this.#mayEnd) return;
    this.#mayEnd = true;
    const child = this.#child;
    child.kill('SIGTERM');
    const ended = untilEnded(child).then(() => true);
    if (!(await within(ENDS_WITHIN_MS, ended))) {
      this.#options.onDefect(`${this.name} did not end within ${ENDS_WITHIN_MS} ms after SIGTERM`);
      await endChild(child);
    } else if (child.exitCode !== 0 && child.signalCode !== 'SIGKILL' && !this.#wasStarting(child)) {
      this.#options.onDefect(`${this.name} ended with ${describeEnd(child)} after SIGTERM`);
    }
  }

  /** Stops the process between two turns of its event loop. */
  stop(): void {
    if (this.#child.connected) this.#child.send('stop', () => undefined);
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  startAgain(): void {
    if (hasEnded(this.#child)) this.#child = this.#start();
  }

  /** Before the program runs, nothing listens for signals, and there is nothing to put in order. */
  #wasStarting({ signalCode }: ChildProcess): boolean {
    return signalCode === 'SIGTERM' && performance.now() - this.#startedAt < STARTS_WITHIN_MS;
  }

  async readLog(): Promise<string> {
    return readFile(this.#options.logFile, 'utf8');
  }

  #start(): ChildProcess {
    this.#mayEnd = false;
    this.#startedAt = performance.now();
    const { logFile, environment } = this.#options;
    const child = startChild(['--import', PRELOAD, findBuiltProgram(), 'worker'], { logFile, environment });
    child.once('exit', () => {
      if (!this.#mayEnd) this.#options.onDefect(`${this.name} ended by itself with ${describeEnd(child)}`);
    });
    return child;
  }
}

function describeEnd({ exitCode, signalCode }: ChildProcess): string {
  return exitCode === null ? String(signalCode) : `code ${exitCode}`;
}
