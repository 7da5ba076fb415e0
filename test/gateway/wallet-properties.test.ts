import { expect, it } from '@jest/globals';
import { checkWallets } from './support/check-wallets.js';

it('knows 2,000 random wallets in all their spellings, and refuses their wrong letters', () => {
  expect(checkWallets(2_000)).toBeGreaterThan(1_000);
});
