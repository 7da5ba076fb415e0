import { ATTACK_TABLE } from '../test/forging/attacks/table.js';
import { replaceBetween } from './between-marks.js';

const BEGIN = '<!-- attacks: made by `npm run docs` from test/forging/attacks -->\n';
const END = '<!-- /attacks -->';

/** The same text with the current counts of what the forging suite attacks. */
export function renderAttacks(text: string): string {
  const total = ATTACK_TABLE.reduce((sum, [, count]) => sum + count, 0);
  const kinds = ATTACK_TABLE.map(([what, count]) => `${what} (${count})`);
  return replaceBetween(text, BEGIN, END, `${total} attacks: ${kinds.join('; ')}.`);
}
