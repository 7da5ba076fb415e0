import { findFreePort } from 'payout-queue/local-redis';
import type { Account, Client, Engine } from './engine.js';
import { openPostgresStore } from './postgres-store.js';
import { startProgram } from './program.js';
import { openRedisStore } from './redis-store.js';
import { openRestateStore } from './restate-store.js';
import { removeStoreDir, type Store } from './store.js';

export type Peer = 'bullmq' | 'dbos' | 'restate';

const WORKER = new URL('peer-worker.mjs', import.meta.url).pathname;

interface OpenedStore {
  readonly store: Store;
  /** A worker that serves this port is there. */
  readonly serve?: (port: number) => Promise<void>;
  readonly close?: () => void;
}

const STORES: Readonly<Record<Peer, () => Promise<OpenedStore>>> = {
  bullmq: async () => ({ store: await openRedisStore() }),
  dbos: async () => ({ store: await openPostgresStore() }),
  restate: async () => {
    const store = await openRestateStore();
    return { store, serve: store.serve, close: store.close };
  },
};

interface PeerModule {
  readonly openClient: (settings: Pick<Store, 'url' | 'adminUrl'> & { readonly careful: boolean }) => Promise<Client>;
}

/** @param careful - with what the peer's documentation has against a second run and a short interval */
export async function openPeer(peer: Peer, careful: boolean, account: Account): Promise<Engine> {
  const { store, serve, close } = await STORES[peer]();
  await store.start();
  const { url, adminUrl = '' } = store;
  const { openClient } = (await import(`./peers/${peer}.mjs`)) as PeerModule;
  let client: Client | undefined;
  return {
    store,
    // Of DBOS a worker makes the tables.
    client: async () => (client ??= await openClient({ url, adminUrl, careful })),
    async startWorker(name) {
      const port = await findFreePort();
      const settings = { peer, careful, name, url, port, account };
      const program = await startProgram([process.execPath, WORKER, JSON.stringify(settings)], /ready/);
      await serve?.(port);
      return program;
    },
    async close() {
      await client?.close();
      await store.stop();
      close?.();
      await removeStoreDir(store.dir);
    },
  };
}
