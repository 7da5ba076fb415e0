import { expect, it } from '@jest/globals';
import { checkWallets } from './support/check-wallets.js';

it('knows a million random wallets in all their spellings, and refuses their wrong letters', () => {
  expect(checkWallets(1_000_000)).toBeGreaterThan(500_000);
}, 900_000);
