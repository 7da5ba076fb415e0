import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { PayoutProducer, type PayoutState } from 'payout-queue';
import { LedgerKeys } from '../../src/ledger/keys.js';
import { makeBenchKeys } from '../bench-keys.js';
import { makeJournalDir } from '../worker-process.js';
import type { Account, Engine, Shown } from './engine.js';
import { startProgram } from './program.js';
import { openRedisStore } from './redis-store.js';
import { removeStoreDir } from './store.js';

const run = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** Stands still once ledger and journal have the attempt: after all checks but the last, within the guard. */
const AT_STEP = new URL('../../test/proofs/late/at-step.mjs', import.meta.url).href;
const STAND_STILL = { AT_STEP: 'entry', AT_STEP_COMMAND: JSON.stringify(['sh', '-c', 'kill -STOP $PPID']) };

const QUICK = { LEASE_MS: '2000', TAKEOVER_QUARANTINE_MS: '1000', IN_FLIGHT_MAX_MS: '1000' };
const AUDIENCE = 'bench';

const SHOWN: Readonly<Record<PayoutState, Shown>> = {
  queued: 'waits',
  sending: 'waits',
  in_progress: 'waits',
  completed: 'done',
  held: 'asks',
  rejected: 'asks',
  unknown: 'asks',
  failed: 'asks',
  cancelled: 'asks',
  written_off: 'asks',
};

/** The built worker with its own settings and with signing keys, as the README sets it up; one journal for all workers. */
export async function openOwn(account: Account, isQuick: boolean): Promise<Engine> {
  const store = await openRedisStore();
  await store.start();
  const [keys, journalDir] = [await makeBenchKeys(), await makeJournalDir()];
  const { platformId, secretKey, baseUrl } = account;
  const { signer } = keys.producer;
  const producer = new PayoutProducer({ redisUrl: store.url, platformId, signer, audience: AUDIENCE });
  const redis = new Redis(store.url);
  redis.on('error', () => undefined);
  const environment = {
    ...process.env,
    REDIS_URL: store.url,
    GATEWAY_PLATFORM_ID: String(platformId),
    GATEWAY_SECRET_KEY: secretKey,
    GATEWAY_BASE_URL: baseUrl,
    SEND_JOURNAL_DIR: journalDir,
    PAYOUT_KEYS_FILE: keys.worker.keysFile,
    PAYOUT_WORKER_SIGNER: `file:${keys.worker.receiptKeyFile}`,
    PAYOUT_WORKER_SIGNER_NAME: 'worker-1',
    PAYOUT_AUDIENCE: AUDIENCE,
    HEALTH_PORT: '0',
    ...(isQuick && QUICK),
    ...STAND_STILL,
  };
  const client = {
    enqueue: async (payouts: Parameters<PayoutProducer['enqueueMany']>[0]) => {
      await producer.enqueueMany(payouts);
    },
    async look(payoutIds: readonly string[]) {
      const found = await Promise.all(payoutIds.map(async (payoutId) => producer.get(payoutId)));
      return new Map(found.map((payout, index) => [payoutIds[index] ?? '', payout ? SHOWN[payout.state] : 'missing']));
    },
    async forge({ payoutId }: { readonly payoutId: string }, addressTo: string) {
      await redis.hset(new LedgerKeys(platformId).payout(payoutId), { addressTo });
    },
    close: async () => producer.close(),
  };
  // As docs/control.md sets a host up: its journal then begins before what it will send is signed.
  await run(process.execPath, [PROGRAM, 'audit', 'adopt-journal', '--reason', 'a new account', '--yes'], {
    env: environment,
  });
  return {
    store,
    client: () => Promise.resolve(client),
    startWorker: async () =>
      startProgram([process.execPath, '--import', AT_STEP, PROGRAM, 'worker'], /"url":"http/, { env: environment }),
    async close() {
      await producer.close();
      redis.disconnect();
      await store.stop();
      await keys.close();
      await rm(journalDir, { recursive: true, force: true });
      await removeStoreDir(store.dir);
    },
  };
}
