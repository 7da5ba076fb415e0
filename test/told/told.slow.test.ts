import { setTimeout as delay } from 'node:timers/promises';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { type Stop, STOPS } from '../../src/operator/stops.js';
import { extrapolate, judgeAlerts, type Snapshot } from './alerts.js';
import { itInLanes } from './lanes.js';
import { Rig, untilAnswer } from './rig.js';
import { WAYS } from './ways/index.js';
import type { Told, Way } from './ways/way.js';

/** Each way to stand still is told by the headline, by exactly these alerts, by `/readyz` and by `payouts doctor`. */

const only = process.env['WAY']?.split(',');

itInLanes(
  4,
  WAYS.filter(({ name }) => only?.some((part) => name.includes(part)) ?? true),
  expectTold,
);

/** Of each worker, in the error of a failed test. */
const LINES_OF_LOG = 15;

async function expectTold(way: Way) {
  const { readyz, headline, doctor } = way.told;
  const rig = await Rig.open(way);
  try {
    await way.prepare?.(rig);
    await rig.startSender();
    const before = await rig.scrape();
    await way.happens(rig);
    await untilAnswer(
      `/readyz is ${readyz.status} and says ${readyz.words}`,
      async () => rig.readyz(),
      ({ status, body }) => (readyz.status === 'none' ? 0 : readyz.status) === status && body.includes(readyz.words),
      // A worker that looks for lost jobs takes up to a minute.
      120_000,
    );
    const [words, page] = HEADLINES[headline];
    await untilAnswer(
      `the headline is "${words}", runbook ${page ?? 'none'}`,
      async () => rig.headline(),
      (found) => found.words === words && found.runbook === page,
    );
    await untilAnswer(
      `doctor exits with ${doctor.exit}, "${doctor.check}" says "${doctor.words}"`,
      async () => rig.doctor(),
      (found) => isFound(found, doctor),
    );
    if (way.stop !== undefined) await expectStop(rig, STOPS[way.stop]);
    await expectAlerts(rig, way, before);
  } catch (error) {
    const logs = rig.workers.map((worker) => worker.log().split('\n').slice(-LINES_OF_LOG).join('\n'));
    throw new Error([(error as Error).message, ...logs].join('\n'), { cause: error });
  } finally {
    await rig.close();
  }
}

/** Status and `/readyz` name the stop in the same words, with the same page. */
async function expectStop(rig: Rig, { words, runbook, readyz }: Stop) {
  const expected = { headline: words, runbook: `docs/runbooks/${runbook}.md` };
  await untilAnswer(
    `status and /readyz say ${JSON.stringify(expected)}`,
    async () => rig.said(),
    (said) => [said.status, ...(readyz === undefined ? [] : [said.readyz])].every((each) => isAlike(each, expected)),
  );
}

const isAlike = (said: Partial<Record<'headline' | 'runbook', string>> | undefined, expected: typeof said) =>
  said?.headline === expected?.headline && said?.runbook === expected?.runbook;

function isFound({ exit, checks }: Awaited<ReturnType<Rig['doctor']>>, doctor: Told['doctor']) {
  const expected = doctor.exit === 0 ? 'warning' : 'problem';
  return (
    exit === doctor.exit &&
    checks.some((each) => each.name === doctor.check && each.status === expected && each.detail.includes(doctor.words))
  );
}

async function expectAlerts(rig: Rig, { told: { alerts }, minutes = 60, repeats }: Way, before: Snapshot) {
  // A busy disk makes this one true, whatever the way is.
  const ignored = ['PayoutsJournalSlow'];
  const ask = async () => {
    const lately = await rig.scrape();
    await delay(2_000);
    const series = extrapolate({ before, since: repeats ? before : lately, now: await rig.scrape() }, minutes);
    return judgeAlerts({ series, minutes, alerts, ignored });
  };
  await untilAnswer('promtool is content', ask, (trouble) => trouble === undefined);
}
