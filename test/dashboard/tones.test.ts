import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { PAYOUT_STATES, STATE_TONE } from '../../src/ledger/states.js';

it('has a CSS class for the tone of every state', () => {
  const css = readFileSync('src/dashboard/style.css', 'utf8');
  for (const state of PAYOUT_STATES)
    expect(css).toMatch(new RegExp(`^\\.tone-${STATE_TONE[state]} \\{\\n +--state:`, 'm'));
});
