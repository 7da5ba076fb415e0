import { expect, it } from '@jest/globals';
import { judgeAlerts } from './support/firing-alerts.js';
import { extrapolate, type Snapshot } from './support/series.js';

/** The alerts about a policy, over what the metrics of a worker say. */

const MINUTES = 30;
const UP = 'payouts_build_info{version="1"} 1\n';
const INFO = (hash: string): string => `payouts_policy_info{platform_id="7",hash="${hash}"} 1\n`;

const snapshot = (at: number, text: string): Snapshot => ({
  at,
  scrapes: [{ instance: 'host-1:9464', text: `${UP}${text}` }],
});

async function told(before: string, since: string, expected: readonly string[]): Promise<string | undefined> {
  const series = extrapolate(
    { before: snapshot(0, before), since: snapshot(0, since), now: snapshot(1, since) },
    MINUTES,
  );
  return judgeAlerts(series, MINUTES, expected);
}

it.each([
  [
    'a window that is used to more than 80 %',
    'payouts_policy_usage_ratio{platform_id="7",rule="day"} 0.81\n',
    ['PayoutsPolicyNearlyUsed'],
  ],
  ['one that is used to 80 %', 'payouts_policy_usage_ratio{platform_id="7",rule="day"} 0.8\n', []],
  ['rates of more than 15 minutes', 'payouts_rate_age_seconds{platform_id="7"} 901\n', ['PayoutsRatesStale']],
  ['younger rates', 'payouts_rate_age_seconds{platform_id="7"} 600\n', []],
  [
    'a file that could not be read again',
    'payouts_policy_reload_failed{platform_id="7"} 1\n',
    ['PayoutsPolicyReloadFailed'],
  ],
])('%s', async (_name, text, expected) => {
  expect(await told(text.replace(/[\d.]+\n$/, '0\n'), text, expected)).toBeUndefined();
});

it('another policy is told', async () => {
  expect(await told(INFO('a'), INFO('b'), ['PayoutsPolicyChanged'])).toBeUndefined();
});

it('the first policy of a worker is no change', async () => {
  expect(await told('', INFO('a'), [])).toBeUndefined();
});
