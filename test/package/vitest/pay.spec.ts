import { test } from 'vitest';
import { payOne } from './pay-one';

test('a payout is paid in vitest', payOne, 60_000);
