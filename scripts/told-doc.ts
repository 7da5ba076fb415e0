import { HEADLINES } from '../src/operator/account-headline.js';
import type { Told } from '../test/told/ways/way.js';
import { WAYS } from '../test/told/ways/index.js';
import { replaceBetween } from './between-marks.js';

const BEGIN = '<!-- faults: made by `npm run docs` from test/told/ways -->\n';
const END = '<!-- /faults -->';

/** The same text with the current list of faults, by headline: a test makes each, and finds what the list says. */
export function renderTold(text: string): string {
  const headlines = groupBy(WAYS, ({ told }) => HEADLINES[told.headline][0]);
  const sections = headlines.map(([headline, ways]) => {
    const lines = groupBy(ways, ({ told }) => describe(told)).map(
      ([answer, same]) => `- ${same.map(({ name }) => name).join('; ')}: ${answer}`,
    );
    return `**${headline}**\n\n${lines.join('\n')}`;
  });
  return replaceBetween(text, BEGIN, END, sections.join('\n\n'));
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): [key: string, items: T[]][] {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups];
}

function describe({ alerts, readyz, doctor, runbook }: Told): string {
  const fired = alerts.map((alert) => alert.replace(/^Payouts/, '')).join(', ');
  const found = `${doctor.exit === 0 ? '!' : '✗'} ${doctor.check}`;
  return `_${fired}_; ${readyz.status}; ${found}; [${runbook}](runbooks/${runbook}.md)`;
}
