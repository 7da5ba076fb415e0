import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { testRedisUrl } from '../../support/account.js';
import { findBuiltProgram } from '../../support/built-program.js';

const PROGRAM = fileURLToPath(new URL('consume-events.mjs', import.meta.url));
const running = new Set<ChildProcess>();

export interface EventConsumer {
  /** How many events it has handled. */
  readonly count: () => number;
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a process that reads events as a group; `onLine` gets each event that it has handled. */
export function startEventConsumer(
  platformId: number,
  { consumer, claimAfterMs }: { readonly consumer: string; readonly claimAfterMs: number },
  onLine: (line: string) => void,
): EventConsumer {
  findBuiltProgram();
  const child = spawn(process.execPath, [PROGRAM, String(platformId), consumer, String(claimAfterMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], REDIS_URL: testRedisUrl() },
  });
  running.add(child);
  let [count, rest] = [0, ''];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    count += lines.length;
    lines.forEach(onLine);
  });
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child);
      resolve();
    });
  });
  return {
    count: () => count,
    async end(signal) {
      child.kill(signal);
      await ended;
    },
  };
}

/** For afterEach: no consumer outlives its test. */
export function endAllEventConsumers(): void {
  for (const child of running) child.kill('SIGKILL');
}
