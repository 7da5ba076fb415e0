import { expect, test } from '@jest/globals';
import { payOne } from './pay-one';

test('a payout is paid in CommonJS', async () => {
  expect(typeof require).toBe('function');
  await payOne();
}, 60_000);
