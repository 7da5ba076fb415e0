import { readFile } from 'node:fs/promises';
import { judgeSeries } from '../told/support/firing-alerts.js';
import { readSamples, shift, type InputSeries } from '../told/support/series.js';
import { SCRAPE_EVERY_MS, type HealthyScrape } from './healthy-system.js';

const EVERY_S = SCRAPE_EVERY_MS / 1_000;

/**
 * Evaluates alert rules over what a healthy system was scraped to say.
 * @param rules - the file of the rules; docs/alerts.yml without it
 * @returns undefined if none fires, else what promtool says
 */
export async function judgeScrapes(file: string, rules?: string): Promise<string | undefined> {
  const scrapes = await readScrapes(file);
  const totalS = (scrapes.length - 1) * EVERY_S;
  return judgeSeries(toSeries(scrapes), {
    everyS: EVERY_S,
    totalS,
    expected: [],
    ...(rules !== undefined && { rules }),
  });
}

export async function readScrapes(file: string): Promise<HealthyScrape[]> {
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line) as HealthyScrape);
}

/** A series that one scrape lacks is stale, as Prometheus marks it. */
function toSeries(scrapes: readonly HealthyScrape[]): InputSeries[] {
  const all = new Map<string, string[]>();
  const sinceS = scrapes[0]?.wallAt ?? 0;
  scrapes.forEach((scrape, turn) => {
    for (const [series, sample] of readSamples(scrape)) {
      const values = all.get(series) ?? [];
      const absent = Array.from({ length: turn - values.length }, () => (values.length === 0 ? '_' : 'stale'));
      values.push(...absent, String(shift(sample, sinceS)?.value));
      all.set(series, values);
    }
  });
  return [...all].map(([series, values]) => {
    const end = values.length < scrapes.length ? ['stale'] : [];
    return { series, values: [...values, ...end].join(' ') };
  });
}
