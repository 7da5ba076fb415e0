import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Arrival, Payment, SandboxStats } from '../../../src/sandbox/sandbox-account.js';
import type { FaultRule } from '../../../src/sandbox/fault-rule.js';
import { PLATFORM_ID, SECRET_KEY } from './account.js';
import { endChild, startChild } from './child-processes.js';
import type { Plan } from './plan.js';

const PROCESS = fileURLToPath(new URL('gateway-process.mjs', import.meta.url));
const SETTLE_AFTER_MS = 200;

/** With keys: each way to come to a decision that an operator signs. */
const SIGNED_FAULTS: readonly FaultRule[] = [
  { kind: 'reject', every: 5, times: 2 },
  { kind: 'drop-before', every: 7, times: 1 },
  { kind: 'drop-after', every: 9, times: 1 },
];

/** What the gateway has seen: the judge of the promises. */
export interface GatewayBook {
  readonly stats: SandboxStats;
  readonly arrivals: readonly Arrival[];
  readonly payments: readonly Payment[];
}

/** The round's gateway, in a process of its own. */
export class Gateway {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(
    { seed, timing, signed }: Pick<Plan, 'seed' | 'timing' | 'signed'>,
    dir: string,
  ): Promise<Gateway> {
    const options = {
      accounts: [{ platformId: PLATFORM_ID, secretKey: SECRET_KEY }],
      minGapMs: timing.minGapMs,
      latencyBeforeMs: timing.latencyBeforeMs,
      latencyAfterMs: timing.latencyAfterMs,
      settleAfterMs: SETTLE_AFTER_MS,
      faults: signed ? SIGNED_FAULTS : [],
      seed,
    };
    const child = startChild([PROCESS, JSON.stringify(options)], {
      logFile: join(dir, 'gateway.log'),
      environment: {},
    });
    const url = await new Promise<string>((resolve, reject) => {
      child.once('message', (message: { url: string }) => {
        resolve(message.url);
      });
      child.once('exit', (code) => {
        reject(new Error(`the gateway ended with code ${String(code)}, see gateway.log`));
      });
    });
    return new Gateway(child, url);
  }

  /** SIGSTOP: what is sent to it meanwhile arrives when it is continued. */
  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  /** Calls arrive and are carried out, but responses wait. */
  async holdResponses(): Promise<void> {
    await this.#control('pause', 'POST');
  }

  async releaseResponses(): Promise<void> {
    await this.#control('continue', 'POST');
  }

  async readStats(): Promise<SandboxStats> {
    return (await this.#control('stats')) as SandboxStats;
  }

  async readBook(): Promise<GatewayBook> {
    const stats = await this.readStats();
    const { arrivals } = (await this.#control('arrivals')) as Pick<GatewayBook, 'arrivals'>;
    return { stats, arrivals, payments: await this.readPayments() };
  }

  async readPayments(): Promise<readonly Payment[]> {
    return ((await this.#control('payments')) as Pick<GatewayBook, 'payments'>).payments;
  }

  async end(): Promise<void> {
    await endChild(this.#child);
  }

  async #control(name: string, method: 'GET' | 'POST' = 'GET'): Promise<unknown> {
    const response = await fetch(`${this.url}/__sandbox/${name}`, { method });
    return response.json();
  }
}
