import type { Way } from '../test/told/way.js';
import { WAYS } from '../test/told/ways/index.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

const BEGIN = '<!-- told: made by `npm run docs` from test/told -->\n';
const END = '<!-- /told -->';

/** The same text with the current table of where an operator sees that payouts stand still. */
export function renderTold(text: string): string {
  const table = markdownTable(['what is wrong', 'alerts', '`/readyz`', '`payouts doctor`'], WAYS.map(describe));
  return replaceBetween(text, BEGIN, END, table);
}

function describe({ name, told: { alerts, readyz, doctor } }: Way): string[] {
  return [
    name,
    alerts.join(', '),
    readyz.status === 'none' ? 'no response' : String(readyz.status),
    `${doctor.exit === 0 ? '!' : '✗'} ${doctor.check}`,
  ];
}
