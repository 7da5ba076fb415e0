/** The table of the stops of an account in docs/architecture.md. */
import { type Stop, STOPS } from '../src/operator/stops.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

const [BEGIN, END] = ['<!-- stops, by `npm run docs` -->\n', '<!-- end of stops -->'];

export function renderStops(text: string): string {
  const rows = Object.values<Stop>(STOPS).map(({ words, runbook, setBy, endedBy, readyz, file }) => [
    `${words} ([page](runbooks/${runbook}.md))`,
    setBy,
    endedBy,
    readyz === undefined ? '' : String(readyz),
    `\`${file}\``,
  ]);
  const head = ['headline', 'set by', 'ended by', '`/readyz`', 'stops in'];
  return replaceBetween(text, BEGIN, END, markdownTable(head, rows));
}
