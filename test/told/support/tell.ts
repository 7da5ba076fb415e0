import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { endAllWorkers } from '../../worker/support/worker-process.js';
import type { DoctorAnswer, Way } from '../way.js';
import { judgeAlerts } from './firing-alerts.js';
import { Rig, type DoctorReport } from './rig.js';
import { extrapolate, type Scrape } from './series.js';

const TOLD_WITHIN_MS = 45_000;
const SCRAPE_EVERY_S = 2;
const MINUTES = 60;

/** Tests that each of these ways to stand still is told by exactly these alerts, by `/readyz` and by `payouts doctor`. */
export function tellsOf(ways: readonly Way[]): void {
  let rig: Rig | undefined;
  afterEach(async () => {
    await endAllWorkers();
    await rig?.close();
    rig = undefined;
  });

  describe('somebody is told', () => {
    it.each(ways)('$name', async (way) => {
      rig = await Rig.open(way);
      await way.prepare?.(rig);
      await rig.startSender();
      const before = await rig.scrape();
      await way.happens(rig);
      await expectReadyz(rig, way);
      await expectDoctor(rig, way);
      await expectAlerts(rig, way, before);
    });
  });
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

function isTold({ exit, checks }: DoctorReport, doctor: DoctorAnswer): boolean {
  const status = doctor.exit === 1 ? 'problem' : 'warning';
  const isIt = (check: (typeof checks)[number]): boolean =>
    check.name === doctor.check && check.status === status && check.detail.includes(doctor.words);
  return exit === doctor.exit && checks.some(isIt);
}

async function expectAlerts(rig: Rig, way: Way, before: readonly Scrape[]): Promise<void> {
  const { minutes = MINUTES } = way;
  const deadline = performance.now() + TOLD_WITHIN_MS;
  let trouble: string | undefined;
  do {
    const during = await rig.scrape();
    const startedAt = performance.now();
    await delay(SCRAPE_EVERY_S * 1_000);
    const betweenS = (performance.now() - startedAt) / 1_000;
    const series = extrapolate({ before, during, later: await rig.scrape(), betweenS }, minutes);
    trouble = await judgeAlerts(series, minutes, way.told.alerts);
  } while (trouble !== undefined && performance.now() < deadline);
  expect(trouble).toBeUndefined();
}
