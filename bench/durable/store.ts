import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A server with its data in one folder, started and stopped as often as needed on the same port. */
export interface Store {
  readonly url: string;
  /** Of Restate's administration. */
  readonly adminUrl?: string;
  readonly dir: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Copies the data of a stopped store. @returns what puts the copy back, also while it is stopped */
export async function copyStore({ dir }: Store): Promise<{ readonly restore: () => Promise<void> }> {
  const copy = `${dir}.copy`;
  await run('cp', ['-a', dir, copy]);
  return {
    restore: async () => {
      await rm(dir, { recursive: true });
      await run('mv', [copy, dir]);
    },
  };
}

export async function makeStoreDir(name: string): Promise<string> {
  return mkdtemp(join(tmpdir(), `payouts-bench-${name}-`));
}

export async function removeStoreDir(dir: string): Promise<void> {
  for (const each of [dir, `${dir}.copy`]) await rm(each, { recursive: true, force: true });
}
