import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { fingerprintOf, parseSshKey } from '../../../src/control/keys/ssh.js';
import { until } from '../../support/until.js';

/**
 * A real ssh-agent with a new Ed25519 key that is in no file any more.
 * @param dir - for its socket, and for the key until the agent has it
 */
export async function startSshAgent(dir: string) {
  const [socket, file] = [`${dir}/agent`, `${dir}/id`];
  const child = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  await until('the agent listens', () => existsSync(socket));
  const run = (program: string, ...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    if (status !== 0) throw new Error(`${program}: ${String(stderr)}`);
    return String(stdout).trim();
  };
  run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', file);
  run('ssh-add', '-q', file);
  rmSync(file);
  rmSync(`${file}.pub`);
  const publicLine = run('ssh-add', '-L');
  const key = parseSshKey(Buffer.from(publicLine.split(' ')[1] ?? '', 'base64'));
  return {
    socket,
    /** As in a keyring. */
    public: publicLine.split(' ').slice(0, 2).join(' '),
    from: `agent:${fingerprintOf(key)}`,
    /** What `ssh-add -l` prints has this. */
    printed: run('ssh-add', '-l'),
    async stop() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;

type Answer = (answer: Buffer, reply: (bytes: Buffer) => void, client: Socket) => void;

/**
 * Between a signer and an agent: it counts requests to sign, and may alter what the agent answers.
 * @param onAnswer - what becomes of the answers, by the type of the message; others pass
 */
export async function startAgentProxy(path: string, target: string, onAnswer: Readonly<Record<number, Answer>> = {}) {
  const open = new Set<Socket>();
  // Of requests to sign.
  const counts = { open: 0, most: 0, all: 0 };
  const server: Server = createServer((client) => {
    const agent = connect(target);
    for (const socket of [client, agent]) {
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => open.delete(socket));
    }
    client.on('data', (bytes) => {
      if (bytes[4] === SIGN_REQUEST) {
        counts.all += 1;
        counts.open += 1;
        counts.most = Math.max(counts.most, counts.open);
      }
      agent.write(bytes);
    });
    client.on('close', () => agent.destroy());
    agent.on('data', (bytes) => {
      if (bytes[4] === SIGN_RESPONSE) counts.open -= 1;
      const alter = onAnswer[bytes[4] ?? 0];
      if (alter === undefined) client.write(bytes);
      else alter(bytes, (reply) => client.write(reply), client);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    counts,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
