import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { renderStatesDoc } from '../../scripts/states-doc.js';
import { PAYOUT_STATES, TRANSITIONS } from '../../src/ledger/states.js';

describe('docs/states.md', () => {
  it('is what `npm run docs` makes of the table', () => {
    expect(readFileSync('docs/states.md', 'utf8')).toBe(renderStatesDoc());
  });

  it('shows every state and every transition', () => {
    const text = renderStatesDoc();
    for (const state of PAYOUT_STATES) expect(text).toMatch(new RegExp(`^\\| \`${state}\` +\\| \\w`, 'm'));
    for (const { from, to, isExceptional } of TRANSITIONS) {
      expect(text).toMatch(new RegExp(`^\\| [^|]*\`${from}\`[^|]*\\| \`${to}\` +\\| `, 'm'));
      expect(text.includes(`    ${from} --> ${to}\n`)).toBe(!isExceptional);
    }
  });
});
