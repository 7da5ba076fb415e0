import { afterEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runExample } from './support.js';

const platformId = newPlatformId();
const producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });

afterEach(async () => {
  await producer.close();
});

describe('examples/enqueue.ts', () => {
  it('enqueues a payout and waits for it', async () => {
    const example = runExample('enqueue.ts', { GATEWAY_PLATFORM_ID: String(platformId) });
    await example.waitForOutput(/ is queued\n$/);
    await producer.cancel('withdrawal-88131');
    expect(await example.end()).toEqual({
      ended: [0, null],
      output: 'withdrawal-88131 is queued\nwithdrawal-88131 is cancelled\n',
    });
  });
});
