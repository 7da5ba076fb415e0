import { ATTACK_TABLE } from '../test/forging/attacks/table.js';
import { replaceBetween } from './between-marks.js';

const BEGIN = '<!-- attacks: made by `npm run docs` from test/forging/attacks -->\n';
const END = '<!-- /attacks -->';

/** The same text with the current counts of what the forging suite attacks. */
export function renderAttacks(text: string): string {
  const count = ATTACK_TABLE.reduce((sum, { attacks }) => sum + attacks.length, 0);
  const kinds = ATTACK_TABLE.map(({ title, attacks }) => `${title} (${attacks.length})`);
  return replaceBetween(text, BEGIN, END, `${count} attacks. ${kinds.join('. ')}.`);
}
