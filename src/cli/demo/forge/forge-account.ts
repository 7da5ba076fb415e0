import { join } from 'node:path';
import type { Payout } from '../../../ledger/payout.js';
import { connectLedger, type LedgerConnection } from '../../../ledger/ledger-connection.js';
import { findFreePort } from '../../../local-redis.js';
import { PayoutProducer } from '../../../control/payout-producer.js';
import { closeRedis, connectRedis } from '../../../redis.js';
import type { Payment } from '../../../sandbox/index.js';
import { createEnvironment, type DemoGround } from '../demo-ground.js';
import type { DemoWorker } from '../demo-worker.js';
import { Attacker } from './attacker.js';
import { adoptJournal, makeKeys } from '../demo-keys.js';

/** One of the two accounts, and everybody who has to do with it. */
export interface ForgeAccount {
  readonly platformId: number;
  readonly hasKeys: boolean;
  /** The shop: it signs what it orders, and verifies what it is told, where it has keys. */
  readonly shop: PayoutProducer;
  readonly worker: DemoWorker;
  readonly attacker: Attacker;
  readonly ledger: LedgerConnection;
  /** What the gateway paid. */
  readonly book: () => readonly Payment[];
  /** How often the worker refused to take a pause as ended. */
  readonly countRefusedResumes: () => Promise<number>;
}

const REFUSED_RESUMES = /^payouts_signature_failures_total\{.*reason="resume".*\} (\d+)/m;

/**
 * Opens an account; its worker is created but not started.
 * @param path - the PATH for the worker's process
 */
export async function openForgeAccount(
  ground: DemoGround,
  { platformId, hasKeys, path }: { platformId: number; hasKeys: boolean; path: string },
): Promise<ForgeAccount> {
  const { dir, redis, sandbox } = ground;
  const connection = connectRedis(redis.url, 'commands');
  ground.onClose(async () => closeRedis(connection));
  const keys = hasKeys ? makeKeys(join(dir, 'keys')) : undefined;
  const shop = new PayoutProducer({
    ...{ platformId, connection, signingKey: keys?.shop, keysFile: keys?.keysFile, audience: keys?.audience },
  });
  ground.onClose(async () => shop.close());
  const attacker = new Attacker(redis.url, platformId);
  ground.onClose(async () => attacker.close());

  const journalDir = join(dir, `journal-${platformId}`);
  if (hasKeys) await adoptJournal(journalDir, platformId);
  const healthPort = await findFreePort();
  const worker = ground.addWorker(`worker-${platformId}`, {
    PATH: path,
    HEALTH_PORT: String(healthPort),
    ...createEnvironment(ground, platformId, journalDir),
    ...keys?.environment,
  });
  return {
    platformId,
    hasKeys,
    shop,
    worker,
    attacker,
    ledger: connectLedger(connection, platformId),
    book: () => sandbox.payments(platformId),
    countRefusedResumes: async () => {
      const response = await fetch(`http://127.0.0.1:${healthPort}/metrics`);
      return Number(REFUSED_RESUMES.exec(await response.text())?.[1] ?? 0);
    },
  };
}

const ON_THE_WAY: readonly Payout['state'][] = ['queued', 'sending', 'in_progress'];

/** Whether the worker has come to an end with all of the payouts. */
export async function areDecided({ shop }: ForgeAccount, payoutIds: readonly string[]): Promise<boolean> {
  const payouts = await Promise.all(payoutIds.map(async (payoutId) => shop.get(payoutId)));
  return payouts.every((payout) => payout !== undefined && !ON_THE_WAY.includes(payout.state));
}
