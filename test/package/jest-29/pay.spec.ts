import { deepEqual, equal } from 'node:assert/strict';
import { PayoutProducer } from 'payout-queue';
import { startLocalRedis } from 'payout-queue/local-redis';
import { startSandbox } from 'payout-queue/sandbox';
import { payOne } from './pay-one';

/** A global of jest: `@jest/globals` is here that of jest 30. */
declare const test: (name: string, work: () => Promise<void>, timeoutMs?: number) => void;

test('a payout is paid in jest 29', payOne, 60_000);

test('all closes without Symbol.asyncDispose, which jest 29 lacks: the run then ends', async () => {
  const redis = await startLocalRedis();
  const sandbox = await startSandbox({ accounts: [{ platformId: 4242, secretKey: 'k-sandbox-only' }] });
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: 4242 });
  try {
    deepEqual(await producer.get('none'), undefined);
    equal(sandbox.payments().length, 0);
  } finally {
    await producer.close();
    await sandbox.close();
    await redis.stop();
  }
});
