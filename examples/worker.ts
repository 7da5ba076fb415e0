/**
 * A worker inside an application, with metrics and a health server. The first SIGTERM or SIGINT ends it in good order: no new send
 * begins, and the response under way is waited for and recorded.
 *
 *     REDIS_URL=… GATEWAY_PLATFORM_ID=… GATEWAY_BASE_URL=… GATEWAY_SECRET_KEY=… npx tsx examples/worker.ts
 */
import { once } from 'node:events';
import {
  createLogger,
  createPayoutWorker,
  createWorkerMetrics,
  startHealthServer,
  type AccountWorker,
} from 'payout-queue';

const {
  REDIS_URL: redisUrl = 'redis://127.0.0.1:6379',
  GATEWAY_PLATFORM_ID: platformId = '4242',
  GATEWAY_BASE_URL: baseUrl = 'http://127.0.0.1:8080',
  GATEWAY_SECRET_KEY: secretKey = 'k-sandbox-only',
  SEND_JOURNAL_DIR: journalDir = './data/journal',
  HEALTH_PORT: healthPort = '9464',
} = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    stop.abort();
  });
}

const logger = createLogger('info');
const metrics = createWorkerMetrics({ version: '1.0.0' });
let accounts: readonly AccountWorker[] = [];
// Before the worker, which waits for Redis: /readyz says so meanwhile.
const health = await startHealthServer({
  host: '127.0.0.1',
  port: Number(healthPort),
  metrics,
  accounts: () => accounts,
  logger,
});
logger.info({ url: health.url }, 'serving /healthz, /readyz and /metrics');

const worker = await createPayoutWorker(
  {
    redisUrl,
    accounts: [{ platformId: Number(platformId), baseUrl, secretKey }],
    // On a disk that outlives the process: it is the second record of every send.
    journalDir,
    observe: metrics.observe,
    logger,
  },
  stop.signal,
);
accounts = worker.accounts;

if (!stop.signal.aborted) await once(stop.signal, 'abort');
await worker.stop();
await health.close();
logger.info({}, 'worker ended');
