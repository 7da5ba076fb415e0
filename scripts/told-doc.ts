import { HEADLINES } from '../src/operator/account-headline.js';
import { WAYS } from '../test/told/ways/index.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

const BEGIN = '<!-- faults: made by `npm run docs` from test/told/ways -->\n';
const END = '<!-- /faults -->';

const HEAD = ['fault', 'headline', 'alerts (Payouts…)', '`/readyz`', '`payouts doctor`', 'runbook'];

/** The same text with the current table of faults: a test makes each, and finds what the table says. */
export function renderTold(text: string): string {
  const rows = WAYS.map(({ name, told: { headline, alerts, readyz, doctor, runbook } }) => [
    name,
    HEADLINES[headline][0],
    alerts.map((alert) => alert.replace(/^Payouts/, '')).join(', '),
    String(readyz.status),
    `${doctor.exit === 0 ? '!' : '✗'} ${doctor.check}`,
    `[${runbook}](runbooks/${runbook}.md)`,
  ]);
  return replaceBetween(text, BEGIN, END, markdownTable(HEAD, rows));
}
