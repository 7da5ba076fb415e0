import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

const running = new Set<ChildProcess>();

// Whatever ends this process, save SIGKILL, ends what it started; the children notice a SIGKILL by their channel.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface ChildOptions {
  /** Takes what the child prints. */
  readonly logFile: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts a Node process with a channel to it. Only PATH reaches it of the environment here. */
export function startChild(args: readonly string[], { logFile, environment }: ChildOptions): ChildProcess {
  const log = openSync(logFile, 'a');
  try {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', log, log, 'ipc'],
      env: { PATH: process.env['PATH'], ...environment },
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    // A message to a child that has just been killed.
    child.on('error', () => undefined);
    return child;
  } finally {
    closeSync(log);
  }
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Resolves when it has ended. */
export async function untilEnded(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  await new Promise((resolve) => child.once('exit', resolve));
}

/** SIGKILL, which a stopped process obeys, too. */
export async function endChild(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await untilEnded(child);
}
