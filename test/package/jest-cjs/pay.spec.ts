import { expect, test } from '@jest/globals';
import { PAID, payOne } from './pay-one';

test('a payout is paid in CommonJS', async () => {
  expect(typeof require).toBe('function');
  expect(await payOne()).toEqual(PAID);
}, 60_000);
