import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from 'payout-queue/local-redis';
import { makeStoreDir, type Store } from './store.js';
import { startProgram, type Program } from './program.js';

/** The program itself: what starts it for npx would outlive it. */
const PACKAGE = `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}`;
const SERVER = new URL(`${PACKAGE}/bin/restate-server`, import.meta.url).pathname;
const HEALTHY_WITHIN_MS = 60_000;

/** The server calls the merchant's workers, through an address that always leads to the newest one. */
export interface RestateStore extends Store {
  readonly adminUrl: string;
  /** A worker that serves this port is there: new calls go to it. */
  readonly serve: (port: number) => Promise<void>;
  readonly close: () => void;
}

/** With Restate's own settings, but for ports and folder. */
export async function openRestateStore(): Promise<RestateStore> {
  const dir = await makeStoreDir('restate');
  const [ingress, admin, node] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const front = await openFront();
  const adminUrl = `http://127.0.0.1:${admin}`;
  const env = {
    ...process.env,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
    RESTATE_LISTEN_MODE: 'tcp',
    RESTATE_DISABLE_TELEMETRY: 'true',
    // Otherwise it counts on the whole machine.
    RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '128MB',
  };
  let server: Program | undefined;
  let isRegistered = false;
  return {
    url: `http://127.0.0.1:${ingress}`,
    adminUrl,
    dir,
    async start() {
      server = await startProgram([SERVER, '--base-dir', dir, '--node-name', 'node'], /./, { env });
      await untilHealthy(adminUrl);
    },
    stop: async () => server?.end(),
    async serve(port) {
      front.leadTo(port);
      if (!isRegistered) await register(adminUrl, front.url);
      isRegistered = true;
    },
    close: () => {
      front.close();
    },
  };
}

async function untilHealthy(adminUrl: string): Promise<void> {
  const giveUpAt = performance.now() + HEALTHY_WITHIN_MS;
  for (;;) {
    const response = await fetch(`${adminUrl}/health`).catch(() => undefined);
    if (response?.ok) return;
    if (performance.now() > giveUpAt) throw new Error('restate-server was not ready in time');
    await delay(50);
  }
}

async function register(adminUrl: string, uri: string): Promise<void> {
  const body = JSON.stringify({ uri });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${adminUrl}/deployments`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`Restate refused the worker: ${await response.text()}`);
}

/** As a load balancer: what is connected stays connected. */
async function openFront() {
  let port = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const worker = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [socket, worker],
      [worker, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.once('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`,
    leadTo: (next: number) => (port = next),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
