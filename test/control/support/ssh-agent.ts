import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until.js';

export interface SshAgent {
  /** What SSH_AUTH_SOCK has to be. */
  readonly socket: string;
  add(privateKeyFile: string): void;
  stop(): Promise<void>;
}

export async function startSshAgent(dir: string): Promise<SshAgent> {
  const socket = join(dir, 'agent');
  const child = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  await until('the agent listens', () => existsSync(socket));
  return {
    socket,
    add(file) {
      const { status, stderr } = spawnSync('ssh-add', ['-q', file], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
      if (status !== 0) throw new Error(`ssh-add: ${String(stderr)}`);
    },
    async stop() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
