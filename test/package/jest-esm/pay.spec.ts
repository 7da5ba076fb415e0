import { expect, test } from '@jest/globals';
import { PAID, payOne } from './pay-one.js';

test('a payout is paid in ES modules', async () => {
  expect(import.meta.url).toMatch(/^file:/);
  expect(await payOne()).toEqual(PAID);
}, 60_000);
