import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openAccount, type LateAccount } from './account.js';
import { seconds } from './cell.js';
import { now, type LateGateway } from './gateway.js';
import type { AnyHost, Host, KernelSettings } from './network.js';
import type { BadLine } from './wire.js';
import type { Stage } from './stage.js';
import { startWorker, type LateWorkerOptions } from './worker.js';

export type Scene = ReturnType<typeof openScene>['scene'];

/** Opens an account with hosts and workers of its own for one cell, and ends them all after the work. */
export async function inScene<Result>(
  stage: Stage,
  gateway: LateGateway,
  work: (scene: Scene) => Promise<Result>,
): Promise<Result> {
  const { scene, close } = openScene(stage, gateway);
  try {
    await scene.account.declareNew();
    return await work(scene);
  } finally {
    await close();
  }
}

function openScene(stage: Stage, gateway: LateGateway) {
  const account = openAccount(stage, gateway);
  const { platformId } = account;
  const opened: (() => Promise<unknown>)[] = [async () => account.close()];
  const scene = {
    ...{ account, gateway },
    openHost: async (name: string, kernel?: KernelSettings): Promise<Host> => {
      const host = await stage.network.openHost(`${name}-${platformId}`, kernel);
      opened.push(async () => host.close());
      return host;
    },
    openHostBehind: async (line: BadLine, name: string): Promise<AnyHost> => {
      const host = await stage.network.openHostBehind(line, `${name}-${platformId}`);
      opened.push(async () => host.close());
      return host;
    },
    /** A worker with a journal of its own, unless told otherwise. */
    startWorker: async (host: AnyHost, options: Partial<Pick<LateWorkerOptions, 'atStep' | 'journalDir'>> = {}) => {
      const journalDir = options.journalDir ?? (await mkdtemp(join(stage.dir, 'journal-')));
      const worker = startWorker(stage, host, { ...options, platformId, gateway, journalDir });
      opened.push(async () => worker.end());
      await worker.started();
      return worker;
    },
  };
  const close = async () => {
    for (const each of opened.reverse()) await each();
  };
  return { scene, close };
}

/** The guard, within which a begun request is written, on a busy machine. */
const WRITES_WITHIN_MS = 3_000;
/** Of a request; the end of a connection is one byte. */
const LEAST_BYTES = 200;

/**
 * Waits until the kernel of a host that is cut off holds a request.
 * @param hasArrived - it may hold nothing, because the request has arrived
 * @returns bytes, or undefined if it holds none
 */
export async function untilHeld(host: Host, port: number, hasArrived: boolean): Promise<number | undefined> {
  const deadline = now() + WRITES_WITHIN_MS;
  for (;;) {
    const bytes = await host.unsentTo(port);
    if (hasArrived || bytes >= LEAST_BYTES) return bytes;
    if (now() > deadline) return undefined;
    await delay(50);
  }
}

const ASK_EVERY_MS = 500;

/**
 * An operator who keeps asking the gateway, and states what it says.
 * @param since - ms, for what is printed
 * @param asksAgainAfterMs - see `stateWhatGatewaySays`
 */
export function keepStating(account: LateAccount, since: number, asksAgainAfterMs?: number) {
  const over = new AbortController();
  const stated: string[] = [];
  const asking = (async () => {
    while (!over.signal.aborted) {
      const kinds = await account.stateWhatGatewaySays(asksAgainAfterMs);
      stated.push(...kinds.map((kind) => `${kind} at ${seconds(now() - since)}`));
      await delay(ASK_EVERY_MS);
    }
  })();
  return {
    stated,
    async end() {
      over.abort();
      await asking;
    },
  };
}
