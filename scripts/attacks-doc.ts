import { ATTACK_TABLE, type ToldAttacks } from '../test/forging/attacks/table.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

const BEGIN = '<!-- attacks: made by `npm run docs` from test/forging/attacks -->\n';
const END = '<!-- /attacks -->';

/** The same text with the current list of what the forging suite does, and what follows. */
export function renderAttacks(text: string): string {
  const count = ATTACK_TABLE.reduce((sum, { attacks }) => sum + attacks.length, 0);
  const table = markdownTable(['what is attacked', 'what happens', 'attacks'], ATTACK_TABLE.flatMap(toRows));
  return replaceBetween(text, BEGIN, END, `${count} attacks:\n\n${table}`);
}

/** One row for each consequence; its attacks stand in one cell. */
function toRows({ title, attacks }: ToldAttacks): string[][] {
  const byConsequence = new Map<string, string[]>();
  for (const { name, from, what } of attacks) {
    const names = byConsequence.get(what) ?? [];
    byConsequence.set(what, [...names, from === undefined ? name : `${name} (${from})`]);
  }
  return [...byConsequence].map(([what, names], index) => [index === 0 ? title : '', what, names.join(' · ')]);
}
