import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import type { CheckResult } from '../../src/cli/doctor/check-result.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { untilSettled } from '../worker/support/payout-world.js';
import { endAllWorkers } from '../worker/support/worker-process.js';
import { judgeAlerts } from './support/firing-alerts.js';
import { until } from '../support/until.js';
import { Rig } from './support/rig.js';
import { extrapolate } from './support/series.js';
import { enqueueAndWait, preparePolicy } from './ways/policy.js';

/** The control of the suite: where all is well, nobody is told anything. */

let rig: Rig | undefined;
afterEach(async () => {
  await endAllWorkers();
  await rig?.close();
  rig = undefined;
});

const A_DAY_MINUTES = 24 * 60;
const HALF_A_DAY = A_DAY_MINUTES / 2;

/** Three days from now. */
const OTHER_DAY = new Date(Date.now() + 3 * A_DAY_MINUTES * 60_000).toLocaleDateString('en', { weekday: 'short' });

it('tells nobody anything about a healthy worker', async () => {
  rig = await Rig.open();
  await rig.startSender();
  await rig.startWorker();
  await rig.world.enqueue(2);
  await untilSettled(rig.world, 2);
  const before = await rig.scrape();

  expect(JSON.parse((await rig.readyz()).body)).toMatchObject({
    ready: true,
    accounts: [{ stopped: [], warnings: [] }],
  });
  const { exit, checks } = await rig.doctor();
  expect({ exit, found: checks.filter(isFinding) }).toEqual({ exit: 0, found: [] });

  const since = await rig.scrape();
  await delay(1_000);
  const series = extrapolate({ before, since, now: await rig.scrape() }, A_DAY_MINUTES);
  expect(await judgeAlerts(series, A_DAY_MINUTES, [])).toBeUndefined();
});

it('tells nobody anything about a payout that waits for its notBefore', async () => {
  rig = await Rig.open();
  await rig.startSender();
  const before = await rig.scrape();
  const later = new Date(Date.now() + 2 * A_DAY_MINUTES * 60_000).toISOString();
  await rig.world.producer.enqueue({ ...aPayout('P-later'), notBefore: later });
  const since = await rig.scrape();
  await delay(1_000);
  const now = await rig.scrape();
  expect(now.scrapes[0]?.text).toMatch(/payouts_in_state\{[^}]*state="queued"\} 1\n/);
  expect((await rig.readyz()).body).toContain('"warnings":[]');
  expect(await judgeAlerts(extrapolate({ before, since, now }, A_DAY_MINUTES), A_DAY_MINUTES, [])).toBeUndefined();
});

it.each([
  ['in its cool-down', '{ name: cool-down, when: { address: new }, over: { wait: 24h } }'],
  ['outside of office hours', `{ name: office-hours, window: "${OTHER_DAY} 08:00-18:00 Europe/Berlin", over: wait }`],
])('tells nobody anything about a payout %s', async (_, rule) => {
  rig = await Rig.open();
  await preparePolicy(rig, rule);
  await rig.startSender();
  const before = await rig.scrape();
  await enqueueAndWait(rig);
  let now = before;
  await until('the policy reports it', async () => {
    now = (await rig?.scrape()) ?? before;
    return /payouts_held\{[^}]*kind="wait"\} 1\n/.test(now.scrapes[0]?.text ?? '');
  });
  const since = { ...now, at: now.at - 1 };
  expect(await judgeAlerts(extrapolate({ before, since, now }, HALF_A_DAY), HALF_A_DAY, [])).toBeUndefined();
});

/** How fast a busy test machine is decides about two of them; without a keyring every run warns of that. */
function isFinding({ name, status }: CheckResult): boolean {
  return status === 'problem' || (status === 'warning' && !['journal folder', 'Redis latency', 'keys'].includes(name));
}
