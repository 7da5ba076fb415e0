import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A process that may be killed, stopped and continued. */
export interface Program {
  /** It stands still (SIGSTOP) before the next call that its engine has begun. */
  standStillAtNextCall(): void;
  goOn(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** @param signal - SIGTERM unless given; SIGKILL follows after some seconds */
  end(signal?: NodeJS.Signals): Promise<void>;
}

const READY_WITHIN_MS = 60_000;
const END_WITHIN_MS = 10_000;

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** @param ready - what it prints once it works */
export async function startProgram(
  command: readonly string[],
  ready: RegExp,
  options: SpawnOptions = {},
): Promise<Program> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  await untilPrinted(child, ready, program);
  return {
    standStillAtNextCall: () => void child.kill('SIGUSR2'),
    goOn: () => void child.kill('SIGCONT'),
    kill: async () => endChild(child, 'SIGKILL'),
    end: async (signal = 'SIGTERM') => endChild(child, signal),
  };
}

async function untilPrinted(child: ChildProcess, ready: RegExp, program: string): Promise<void> {
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (printed = (printed + chunk.toString()).slice(-4_000)));
  }
  const giveUpAt = performance.now() + READY_WITHIN_MS;
  while (!ready.test(printed)) {
    if (!running.has(child)) throw new Error(`${program} ended:\n${printed}`);
    if (performance.now() > giveUpAt) throw new Error(`${program} was not ready in time:\n${printed}`);
    await delay(20);
  }
}

async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!running.has(child)) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  // A stopped process sees no SIGTERM.
  child.kill('SIGCONT');
  const force = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
  await exit;
  clearTimeout(force);
}
