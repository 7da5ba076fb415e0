import { afterEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { endAllWorkers } from '../worker/support/worker-process.js';
import { firesThroughout } from './support/firing-alerts.js';
import { Rig } from './support/rig.js';
import { extrapolate, type Snapshot } from './support/series.js';

/** No alert of the account's state resolves because the worker died: the dashboard and `payouts notify` report it too. */

let rig: Rig | undefined;
afterEach(async () => {
  await endAllWorkers();
  await rig?.close();
  rig = undefined;
});

const MINUTES = 30;
const OF_THE_STATE = ['PayoutsPaused', 'PayoutsUnknown', 'PayoutsHeld'];

it('alerts that fire go on when the worker is killed, whichever exporter is left', async () => {
  rig = await Rig.open({ sandbox: { faults: [{ kind: 'drop-after', times: 1 }] } });
  const { world, operator, client, prefix, redis } = rig;
  await rig.startSender();
  await world.enqueue(1);
  await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
  await rig.replaceWorker(async () => {
    await world.enqueue(1, 'H');
    await client.hset(`${prefix}:payout:H-1`, 'metadata', '{');
  });
  await until('one is held', async () => (await world.producer.stats()).held === 1);
  await operator.pause({ by: 'ann', reason: 'to check it' });
  await rig.startExporter('notify');
  await rig.startExporter('dashboard');

  let before: Snapshot | undefined;
  await until('the worker reports all three', async () => {
    before = await rig?.scrape();
    const text = before?.scrapes[0]?.text ?? '';
    return /payouts_paused\{[^}]*\} 1\n/.test(text) && /payouts_held\{[^}]*\} 1\n/.test(text);
  });
  const [worker] = before?.scrapes ?? [];
  const workers = worker === undefined ? [] : [worker];
  rig.worker.kill('SIGKILL');
  await rig.worker.ended;

  const exported = (await rig.scrape()).scrapes;
  expect(exported.map(({ instance }) => instance)).toEqual(['notify', 'dashboard']);
  for (const left of [['notify'], ['dashboard'], ['notify', 'dashboard']]) {
    const texts = exported.filter(({ instance }) => left.includes(instance));
    const series = extrapolate(
      {
        before: { at: 0, scrapes: [...workers, ...texts] },
        since: { at: 1, scrapes: texts },
        now: { at: 2, scrapes: texts },
      },
      MINUTES,
    );
    expect(await firesThroughout(series, MINUTES, OF_THE_STATE)).toBeUndefined();
  }

  // The control: with the worker alone they end with it.
  const alone = { before: { at: 0, scrapes: workers }, since: { at: 1, scrapes: [] }, now: { at: 2, scrapes: [] } };
  expect(await firesThroughout(extrapolate(alone, MINUTES), MINUTES, OF_THE_STATE)).toContain('PayoutsPaused');

  // Without Redis, an exporter says so, and shows no old numbers.
  await redis.stop();
  const [without] = (await rig.scrape()).scrapes;
  expect(without?.text).toContain('payouts_redis_up 0');
  expect(without?.text).not.toContain('payouts_paused{');
});
