import { expect, test } from 'vitest';
import { PAID, payOne } from './pay-one';

test('a payout is paid in vitest', async () => {
  expect(await payOne()).toEqual(PAID);
}, 60_000);
