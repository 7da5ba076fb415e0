import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { PayoutEvent } from '../../src/producer/events/payout-events.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runExample } from './support.js';

const platformId = newPlatformId();
let dir: string;
let file: string;
let producer: PayoutProducer;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-example-'));
  file = join(dir, 'events.jsonl');
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
  await rm(dir, { recursive: true });
});

describe('examples/events.ts', () => {
  it('books each event once, also one that is delivered again after a crash between booking and acknowledging', async () => {
    await producer.enqueue({ payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' });
    for await (const event of producer.events({ group: 'bookkeeping', consumer: hostname() })) {
      await writeFile(file, `${JSON.stringify(event)}\n`);
      // Ends the loop without acknowledging the event, as a crash does.
      break;
    }
    await producer.cancel('a');

    const example = runExample('events.ts', { GATEWAY_PLATFORM_ID: String(platformId), EVENTS_FILE: file });
    await example.waitForOutput(/a: cancelled\n/);
    expect(await example.end('SIGTERM')).toEqual({ ended: [0, null], output: 'a: cancelled\n' });
    const booked = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as PayoutEvent);
    expect(booked.map(({ payoutId, to }) => `${payoutId} ${to}`)).toEqual(['a queued', 'a cancelled']);
  });
});
