import { afterEach, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { startNotify } from '../notifications/support/notify-process.js';
import { startCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { endAllWorkers } from '../worker/support/worker-process.js';
import { firesThroughout } from './support/firing-alerts.js';
import { Rig } from './support/rig.js';
import { extrapolate, type Scrape, type Snapshot } from './support/series.js';

/** No alert of the account's state resolves because the worker died: the dashboard and `payouts notify` report it too. */

let rig: Rig | undefined;
const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await endAllWorkers();
  await rig?.close();
  rig = undefined;
});

type Read = () => Promise<string>;

async function startNotifyExporter({ redis, platformId }: Rig): Promise<Read> {
  const notify = await startNotify(redis.url, platformId, 'http://127.0.0.1:9/nobody');
  ends.push(async () => {
    notify.kill('SIGKILL');
    await notify.result;
  });
  return async () => (await notify.read('/metrics')).body;
}

async function startDashboardExporter({ redis, platformId }: Rig): Promise<Read> {
  const port = await findFreePort();
  const env = { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(platformId), DASHBOARD_PORT: String(port) };
  const dashboard = startCli(['dashboard'], { env });
  ends.push(async () => {
    dashboard.kill('SIGKILL');
    await dashboard.result;
  });
  await dashboard.waitForOutput(/Dashboard on/);
  return async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

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
  const exporters = { notify: await startNotifyExporter(rig), dashboard: await startDashboardExporter(rig) };
  const scrape = async (...names: (keyof typeof exporters)[]): Promise<Scrape[]> =>
    Promise.all(names.map(async (name) => ({ instance: name, text: await exporters[name]() })));

  let before: Snapshot | undefined;
  await until('the worker reports all three', async () => {
    before = await rig?.scrape();
    const text = before?.scrapes[0]?.text ?? '';
    return /payouts_paused\{[^}]*\} 1\n/.test(text) && /payouts_held\{[^}]*\} 1\n/.test(text);
  });
  const worker = before?.scrapes ?? [];
  rig.worker.kill('SIGKILL');
  await rig.worker.ended;

  for (const left of [['notify'], ['dashboard'], ['notify', 'dashboard']] as const) {
    const texts = await scrape(...left);
    const series = extrapolate(
      {
        before: { at: 0, scrapes: [...worker, ...texts] },
        since: { at: 1, scrapes: texts },
        now: { at: 2, scrapes: texts },
      },
      MINUTES,
    );
    expect(await firesThroughout(series, MINUTES, OF_THE_STATE)).toBeUndefined();
  }

  // The control: with the worker alone they end with it.
  const alone = { before: { at: 0, scrapes: worker }, since: { at: 1, scrapes: [] }, now: { at: 2, scrapes: [] } };
  expect(await firesThroughout(extrapolate(alone, MINUTES), MINUTES, OF_THE_STATE)).toContain('PayoutsPaused');

  // Without Redis, an exporter says so, and shows no old numbers.
  await redis.stop();
  const [without] = await scrape('notify');
  expect(without?.text).toContain('payouts_redis_up 0');
  expect(without?.text).not.toContain('payouts_paused{');
});
