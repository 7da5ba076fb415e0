import { afterEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { PayoutProducer } from '../../src/index.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/enqueue.ts', import.meta.url));
const platformId = newPlatformId();
const producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });

afterEach(async () => {
  await producer.close();
});

describe('examples/enqueue.ts', () => {
  it('enqueues a payout and waits for it', async () => {
    const env = { ...process.env, GATEWAY_PLATFORM_ID: String(platformId), REDIS_URL: testRedisUrl() };
    const child = spawn(process.execPath, ['--import', 'tsx', EXAMPLE], { env });
    const ended = once(child, 'close');
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (/ is queued\n$/.test(output)) void producer.cancel('withdrawal-88131');
    });
    expect(await ended).toEqual([0, null]);
    expect(output).toBe('withdrawal-88131 is queued\nwithdrawal-88131 is cancelled\n');
  });
});
