import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer, type PayoutEvent } from '../../src/index.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runExample, type RunningExample } from './support.js';

const platformId = newPlatformId();
let dir: string;
let producer: PayoutProducer;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-example-'));
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
  await rm(dir, { recursive: true });
});

function run(): RunningExample {
  return runExample('events.ts', { GATEWAY_PLATFORM_ID: String(platformId), EVENTS_FILE: join(dir, 'events.jsonl') });
}

describe('examples/events.ts', () => {
  it('books each event once, also when it is killed and delivered an event again', async () => {
    await producer.enqueue({ payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' });
    const first = run();
    await first.waitForOutput(/a: queued\n/);
    // The event was booked and not acknowledged: it comes again.
    await first.end('SIGKILL');

    await producer.cancel('a');
    const second = run();
    await second.waitForOutput(/a: cancelled\n/);
    expect((await second.end('SIGTERM')).ended).toEqual([0, null]);
    const booked = (await readFile(join(dir, 'events.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as PayoutEvent);
    expect(booked.map(({ payoutId, to }) => `${payoutId} ${to}`)).toEqual(['a queued', 'a cancelled']);
  });
});
