import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { HEADLINES } from '../../../src/operator/account-headline.js';
import { until } from '../../support/until.js';
import type { Told, Way } from '../way.js';
import { judgeAlerts } from './firing-alerts.js';
import { Rig, type DoctorReport } from './rig.js';
import { extrapolate, type Snapshot } from './series.js';

const TOLD_WITHIN_MS = 60_000;
const SCRAPE_AFTER_MS = 2_000;
const AT_A_TIME = 4;
const MINUTES = 60;

/**
 * Tests that each of these ways to stand still is told by the headline, by exactly these alerts, by `/readyz` and by `payouts doctor`. Several
 * at the same time, since each mostly waits.
 */
export function tellsOf(ways: readonly Way[]): void {
  const told = new Map<Way, Promise<void>>();
  beforeAll(() => {
    const lanes = Array.from({ length: AT_A_TIME }, async () => Promise.resolve());
    ways.forEach((way, index) => {
      const lane = index % AT_A_TIME;
      const result = (lanes[lane] ?? Promise.resolve()).then(async () => expectTold(way));
      told.set(way, result);
      lanes[lane] = result.catch(() => undefined);
    });
  });
  afterAll(async () => {
    await Promise.allSettled(told.values());
  });

  describe('someone is told', () => {
    it.each(ways)('$name', async (way) => told.get(way));
  });
}

async function expectTold(way: Way): Promise<void> {
  const rig = await Rig.open(way);
  try {
    await way.prepare?.(rig);
    await rig.startSender();
    const before = await rig.scrape();
    await way.happens(rig);
    await expectReadyz(rig, way);
    await expectHeadline(rig, way);
    await expectDoctor(rig, way);
    await expectAlerts(rig, way, before);
  } finally {
    await rig.close();
  }
}

async function expectReadyz(rig: Rig, { told: { readyz } }: Way): Promise<void> {
  const status = readyz.status === 'none' ? 0 : readyz.status;
  let last = { status: -1, body: '' };
  await until(
    () => `/readyz is ${readyz.status} and says ${readyz.words}, but: ${JSON.stringify(last)}`,
    async () => {
      last = await rig.readyz();
      return last.status === status && last.body.includes(readyz.words);
    },
    TOLD_WITHIN_MS,
  );
}

async function expectHeadline(rig: Rig, { name, told }: Way): Promise<void> {
  const [words, page] = HEADLINES[told.headline];
  let last: Awaited<ReturnType<Rig['headline']>> | undefined;
  await until(
    () => `the headline of "${name}" is "${words}", runbook ${page ?? 'none'}, but: ${JSON.stringify(last)}`,
    async () => {
      last = await rig.headline();
      return last.words === words && last.runbook === page;
    },
    TOLD_WITHIN_MS,
  );
}

async function expectDoctor(rig: Rig, { told: { doctor } }: Way): Promise<void> {
  let last: DoctorReport | undefined;
  await until(
    () => `doctor exits with ${doctor.exit}, "${doctor.check}" says "${doctor.words}", but: ${JSON.stringify(last)}`,
    async () => {
      last = await rig.doctor();
      return isTold(last, doctor);
    },
    TOLD_WITHIN_MS,
  );
}

function isTold({ exit, checks }: DoctorReport, doctor: Told['doctor']): boolean {
  const status = doctor.exit === 0 ? 'warning' : 'problem';
  const isIt = (check: (typeof checks)[number]): boolean =>
    check.name === doctor.check && check.status === status && check.detail.includes(doctor.words);
  return exit === doctor.exit && checks.some(isIt);
}

/** A busy disk makes this one true, whatever the way is. */
const OF_THE_MACHINE = ['PayoutsJournalSlow'];

async function expectAlerts(rig: Rig, way: Way, before: Snapshot): Promise<void> {
  const { minutes = MINUTES } = way;
  const deadline = performance.now() + TOLD_WITHIN_MS;
  let trouble: string | undefined;
  do {
    const lately = await rig.scrape();
    await delay(SCRAPE_AFTER_MS);
    const since = way.repeats ? before : lately;
    const series = extrapolate({ before, since, now: await rig.scrape() }, minutes);
    trouble = await judgeAlerts(series, minutes, way.told.alerts, OF_THE_MACHINE);
  } while (trouble !== undefined && performance.now() < deadline);
  expect(trouble).toBeUndefined();
}
