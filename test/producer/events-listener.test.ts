import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { produceEvents } from './support/many-events.js';
import { payoutInput } from './support/payout-input.js';

let account: TestAccount;
let producer: PayoutProducer;
let complaints: string[];

beforeEach(() => {
  account = openTestAccount();
  complaints = [];
  const logger = { ...silentLogger, error: (_: object, message: string) => void complaints.push(message) };
  producer = new PayoutProducer({ platformId: account.platformId, redisUrl: testRedisUrl(), logger });
});

afterEach(async () => {
  await producer.close();
  await account.close();
});

describe('listeners', () => {
  it('hear what happens from now on, by the name of the state or of what happened to the account', async () => {
    await producer.enqueue(payoutInput({ payoutId: 'before' }));
    const heard: string[] = [];
    producer.on('queued', ({ payoutId }) => heard.push(`queued ${payoutId ?? ''}`));
    producer.on('completed', ({ payoutId, from }) => heard.push(`completed ${payoutId ?? ''} from ${from ?? ''}`));
    producer.on('paused', ({ by, reason }) => heard.push(`paused ${by ?? ''} ${reason ?? ''}`));
    await producer.enqueue(payoutInput({ payoutId: 'after' }));
    await produceEvents(account.ledger, 1);
    await account.ledger.pause('ann', 'lunch');
    await until('four events', () => heard.length === 4);
    expect(heard).toEqual(['queued after', 'queued p-1', 'completed p-1 from in_progress', 'paused ann lunch']);
  });

  it('do not suffer from each other, nor from one that was removed', async () => {
    const heard: string[] = [];
    const taken = (): void => void heard.push('removed');
    producer
      .on('queued', () => {
        throw new Error('a mistake');
      })
      .on('queued', async () => Promise.reject(new Error('a later mistake')))
      .on('queued', taken)
      .on('queued', ({ payoutId }) => heard.push(payoutId ?? ''))
      .off('queued', taken);
    await producer.enqueue(payoutInput({ payoutId: 'a' }));
    await until('an event and two complaints', () => heard.length > 0 && complaints.length === 2);
    expect(heard).toEqual(['a']);
  });
});
