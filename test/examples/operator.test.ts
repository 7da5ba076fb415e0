import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openSampleAccount, type SampleAccount } from '../dashboard/support/sample-account.js';
import { testRedisUrl } from '../support/account.js';
import { runExample } from './support.js';

const TXHASH = '9f86d081884c7d659a2feaa0c55ad015';
let account: SampleAccount;
let dir: string;

beforeEach(async () => {
  account = await openSampleAccount();
  dir = await mkdtemp(join(tmpdir(), 'payouts-example-'));
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

describe('examples/operator.ts', () => {
  it('decides about what the records show, leaves the rest, and resumes the account', async () => {
    for (const payoutId of ['paid', 'never-received', 'not-in-the-records']) {
      await account.sendAs(payoutId, { kind: 'unknown', reason: 'no response' });
    }
    await account.ledger.pause('ann', 'incident');
    const records = join(dir, 'records.json');
    await writeFile(records, JSON.stringify({ paid: TXHASH, 'never-received': null }));

    const example = runExample(
      'operator.ts',
      { GATEWAY_PLATFORM_ID: String(account.platformId) },
      { args: [records, 'ticket 813'] },
    );
    expect(await example.end()).toEqual({
      ended: [0, null],
      output: 'paid is in_progress\nnever-received is queued\n',
    });
    const stateOf = async (payoutId: string): Promise<unknown> => (await account.ledger.get(payoutId))?.state;
    expect(await stateOf('not-in-the-records')).toBe('unknown');
    expect((await account.ledger.get('never-received'))?.history.at(-1)).toMatchObject({ reason: 'ticket 813' });
    const producer = new PayoutProducer({ platformId: account.platformId, redisUrl: testRedisUrl() });
    expect(await producer.stats()).toMatchObject({ paused: false, unknown: 1 });
    await producer.close();
  });
});
