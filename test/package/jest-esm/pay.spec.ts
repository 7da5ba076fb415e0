import { expect, test } from '@jest/globals';
import { payOne } from './pay-one.js';

test('a payout is paid in ES modules', async () => {
  expect(import.meta.url).toMatch(/^file:/);
  await payOne();
}, 60_000);
