import { join } from 'node:path';
import { connectLedger, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { findFreePort, type LocalRedis } from '../../local-redis.js';
import { PayoutProducer } from '../../control/payout-producer.js';
import { closeRedis, connectRedis } from '../../redis.js';
import type { Sandbox } from '../../sandbox/index.js';
import { DEMO_PLATFORM_ID } from './demo-account.js';
import { createEnvironment, openGround, type DemoGround } from './demo-ground.js';
import type { DemoWorker } from './demo-worker.js';

/** Everything that the demo starts: its own Redis, gateway and worker, and access to the account. */
export interface DemoStage {
  readonly redis: LocalRedis;
  readonly sandbox: Sandbox;
  readonly worker: DemoWorker;
  readonly producer: PayoutProducer;
  readonly ledger: LedgerConnection;
  /** The environment with which other commands work on the same account. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where the worker serves `/healthz` and `/metrics`. */
  readonly healthUrl: string;
  /** Stops all of it and removes its files. */
  close(): Promise<void>;
}

/** Milliseconds until a request arrives, and until its response does: a network that makes pacing hard. */
export const JITTER = { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: { min: 20, max: 80 } };

const SETTLE_AFTER_MS = 2_000;

/**
 * Starts Redis and the sandbox; the worker is created but not started.
 * @param path - the PATH for the worker's process
 * @throws RedisUnavailableError when `redis-server` cannot be started, saying how to get it
 */
export async function openStage(path: string): Promise<DemoStage> {
  const ground = await openGround([DEMO_PLATFORM_ID], { settleAfterMs: SETTLE_AFTER_MS, ...JITTER });
  try {
    return await setStage(ground, path);
  } catch (error) {
    await ground.close();
    throw error;
  }
}

async function setStage(ground: DemoGround, path: string): Promise<DemoStage> {
  const { dir, redis, sandbox, close } = ground;
  const connection = connectRedis(redis.url, 'commands');
  ground.onClose(async () => closeRedis(connection));
  const producer = new PayoutProducer({ platformId: DEMO_PLATFORM_ID, connection });
  ground.onClose(async () => producer.close());

  const environment = createEnvironment(ground, DEMO_PLATFORM_ID, join(dir, 'journal'));
  const healthPort = await findFreePort();
  const worker = ground.addWorker('worker', { PATH: path, HEALTH_PORT: String(healthPort), ...environment });
  const ledger = connectLedger(connection, DEMO_PLATFORM_ID);
  const healthUrl = `http://127.0.0.1:${healthPort}`;
  return { redis, sandbox, worker, producer, ledger, environment, healthUrl, close };
}
