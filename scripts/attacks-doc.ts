import { ATTACK_TABLE, type ToldAttacks } from '../test/forging/attacks/table.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

const BEGIN = '<!-- attacks: made by `npm run docs` from test/forging/attacks -->\n';
const END = '<!-- /attacks -->';

/** The same text with the current list of what the forging suite does, and what came of it. */
export function renderAttacks(text: string): string {
  const count = ATTACK_TABLE.reduce((sum, { attacks }) => sum + attacks.length, 0);
  const content = [`${count} attacks, as the tests carry them out:`, ...ATTACK_TABLE.map(describe)].join('\n\n');
  return replaceBetween(text, BEGIN, END, content);
}

function describe({ title, attacks }: ToldAttacks): string {
  const hasFrom = attacks.some(({ from }) => from !== undefined);
  const rows = attacks.map(({ name, from = '', what }) => [name, ...(hasFrom ? [from] : []), what]);
  const table = markdownTable(['attack', ...(hasFrom ? ['the payout was'] : []), 'what happens'], rows);
  return `## ${title}\n\n${table}`;
}
