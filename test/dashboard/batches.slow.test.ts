import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { writeSampleBatches } from './support/live-account.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

jest.setTimeout(300_000);

const SIZE = 100_000;
const LIMIT_MS = 200;

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  for (let from = 0; from < SIZE; from += 1_000) {
    const payouts = Array.from({ length: 1_000 }, (_, index) => aPayout(`p-${from + index}`, { batch: 'large' }));
    await account.ledger.enqueue(payouts);
  }
  dashboard = await openDashboard(account);
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

it('answers before a count that no worker made, and shows the count when it is done', async () => {
  await dashboard.read('/payouts');
  const startedAt = performance.now();
  const page = await dashboard.read('/batch?name=large');
  process.stdout.write(`/batch?name=large, not counted: ${(performance.now() - startedAt).toFixed(0)} ms\n`);
  expect(page).toContain('100,000 payouts');
  expect(page).toContain('Being counted');
  expect(await dashboard.read('/batches')).toContain('Not counted yet');
  const isCounted = async (): Promise<boolean> =>
    (await dashboard.read('/batch?name=large')).includes('0 of 100,000, 100,000 left');
  await until('counted', isCounted, 120_000);
});

describe('what the sender counted', () => {
  beforeAll(async () => writeSampleBatches(account, ['large']));

  it.each(['/batch?name=large', '/batches', '/payouts?batch=large', '/payouts'])(
    '%s with 100,000 payouts takes 0.2 s at most, unless the machine is busy',
    async (path) => {
      const taken: number[] = [];
      for (let index = 0; index < 7; index += 1) {
        const startedAt = performance.now();
        const response = await dashboard.ask(path);
        await response.text();
        expect(response.status).toBe(200);
        taken.push(performance.now() - startedAt);
      }
      const fastest = Math.min(...taken);
      process.stdout.write(`${path}: ${fastest.toFixed(0)} ms\n`);
      expect(fastest).toBeLessThan(LIMIT_MS);
    },
  );

  it('a batch counts what changed since the sender counted', async () => {
    await account.ledger.change({ payoutId: 'p-7', from: 'queued', to: 'cancelled', by: 'ann', reason: 'wrong' });
    expect(await dashboard.read('/batch?name=large')).toContain('1 cancelled, 99,999 left');
  });
});
