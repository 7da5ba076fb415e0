import type { Way } from '../test/told/way.js';
import { WAYS } from '../test/told/ways/index.js';
import { markdownTable } from './markdown-table.js';

const BEGIN = '<!-- told: made by `npm run docs` from test/told -->\n';
const END = '<!-- /told -->';

/** The same text with the current table of who tells an operator that payouts stand still. */
export function renderTold(text: string): string {
  const [head, rest] = split(text, BEGIN);
  const [, tail] = split(rest, END);
  const table = markdownTable(['what is wrong', 'alerts', '`/readyz`', '`payouts doctor`'], WAYS.map(describe));
  return `${head}${BEGIN}\n${table}\n\n${END}${tail}`;
}

function split(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`the mark ${mark.trim()} is missing`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function describe({ name, told: { alerts, readyz, doctor } }: Way): string[] {
  return [
    name,
    alerts.join(', '),
    readyz.status === 'none' ? 'no response' : `${readyz.status}: \`${readyz.words}\``,
    `${doctor.exit === 1 ? '✗' : '!'} ${doctor.check}: \`${doctor.words}\``,
  ];
}
