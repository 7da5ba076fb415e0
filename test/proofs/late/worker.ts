import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import { endChild, isRunning } from './children.js';
import { now, type LateGateway } from './gateway.js';
import type { AnyHost } from './network.js';
import type { Stage } from './stage.js';

const AT_STEP = new URL('at-step.mjs', import.meta.url).href;
const SECRET_KEY = 'k-late-0123456789';

/** A step of a send in the worker: see `at-step.mjs`. */
export type WorkerStep = 'begin' | 'entry' | 'first-byte';

export interface LateWorkerOptions {
  readonly platformId: number;
  readonly gateway: LateGateway;
  readonly journalDir: string;
  /** Runs a command within a step of the send that follows {@link LateWorker.arm}. */
  readonly atStep?: { readonly step: WorkerStep; readonly command: readonly string[] } | undefined;
}

export type LateWorker = ReturnType<typeof startWorker>;

/** `payouts worker` as it is built, on a host. */
export function startWorker(stage: Stage, host: AnyHost, options: LateWorkerOptions) {
  const { platformId, gateway, journalDir, atStep } = options;
  const preload = atStep === undefined ? [] : ['--import', AT_STEP];
  const child = host.start([process.execPath, ...preload, findBuiltProgram(), 'worker'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      REDIS_URL: stage.redisUrl,
      GATEWAY_PLATFORM_ID: String(platformId),
      GATEWAY_BASE_URL: gateway.url,
      GATEWAY_SECRET_KEY: SECRET_KEY,
      NODE_EXTRA_CA_CERTS: gateway.caFile,
      SEND_JOURNAL_DIR: journalDir,
      HEALTH_PORT: '0',
      ...(atStep && { AT_STEP: atStep.step, AT_STEP_COMMAND: JSON.stringify(atStep.command) }),
    },
  });
  let log = '';
  let waitsUntil = 0;
  child.stderr?.on('data', (chunk: Buffer) => {
    log += chunk.toString();
    const found = /"holdOffMs":(\d+)/.exec(chunk.toString());
    if (found !== null) waitsUntil = now() + Number(found[1]);
  });
  return {
    pid: child.pid ?? 0,
    log: () => log,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    /** From now on the next send comes to the step. */
    arm: () => void child.kill('SIGUSR2'),
    /** When its command had run, ms of the monotonic clock. */
    steppedAt() {
      const found = /^\{"atStep":.*"at":([\d.]+)\}$/m.exec(log);
      return found === null ? undefined : Number(found[1]);
    },
    /** Until when it waits as the sender for a request that may still arrive, ms of the monotonic clock. */
    waitsUntil: () => waitsUntil,
    async started() {
      await until(
        () => `the worker serves its health:\n${log}`,
        () => !isRunning(child) || log.includes('"url":"http'),
      );
      if (!isRunning(child)) throw new Error(`the worker ended:\n${log}`);
    },
    end: async () => endChild(child),
  };
}
