import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { aPayout } from '../ledger/support/a-payout.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { extrapolate, firesThroughout, judgeAlerts, type Snapshot } from './alerts.js';
import { Rig, type RigOptions } from './rig.js';

/** The controls of the suite: where all is well nobody is told anything, and nothing ends because its worker died. */

const openRig = async (options?: RigOptions): Promise<Rig> => closeAfterTest(await Rig.open(options));

const DAY_MINUTES = 24 * 60;

it('tells nobody anything about a healthy worker, and a payout that waits for its notBefore', async () => {
  const rig = await openRig();
  await rig.startSender();
  await rig.startWorker();
  await rig.pay(2);
  const before = await rig.scrape();
  const notBefore = new Date(Date.now() + 2 * DAY_MINUTES * 60_000).toISOString();
  await rig.world.producer.enqueue({ ...aPayout('P-later'), notBefore });
  const since = await rig.scrape();
  await delay(1_000);
  const series = extrapolate({ before, since, now: await rig.scrape() }, DAY_MINUTES);
  expect(await judgeAlerts({ series, minutes: DAY_MINUTES, alerts: [] })).toBeUndefined();
  const ready = { ready: true, accounts: [{ stopped: [], warnings: [] }] };
  expect(JSON.parse((await rig.readyz()).body)).toMatchObject(ready);
  // How fast a busy test machine is decides about two of them; without a keyring every run warns of that.
  const expected = ['journal folder', 'Redis latency', 'keys'];
  const { exit, checks } = await rig.doctor();
  const found = checks.filter(
    ({ name, status }) => status === 'problem' || (status === 'warning' && !expected.includes(name)),
  );
  expect({ exit, found }).toEqual({ exit: 0, found: [] });
});

it('alerts that fire go on when the worker is killed, whichever exporter is left', async () => {
  const rig = await openRig({ sandbox: { faults: [{ kind: 'drop-after', times: 1 }] } });
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
  let workers: Snapshot['scrapes'] = [];
  await until('the worker reports all three', async () => {
    workers = (await rig.scrape()).scrapes.slice(0, 1);
    const [{ text } = { text: '' }] = workers;
    return /payouts_paused\{[^}]*\} 1\n/.test(text) && /payouts_held\{[^}]*\} 1\n/.test(text);
  });
  rig.worker.kill('SIGKILL');
  await rig.worker.ended;

  const exported = (await rig.scrape()).scrapes;
  const goOn = async (left: readonly string[]): Promise<string | undefined> => {
    const scrapes = exported.filter(({ instance }) => left.includes(instance));
    const before = { at: 0, scrapes: [...workers, ...scrapes] };
    const series = extrapolate({ before, since: { at: 1, scrapes }, now: { at: 2, scrapes } }, 30);
    return firesThroughout(series, 30, ['PayoutsPaused', 'PayoutsUnknown', 'PayoutsHeld']);
  };
  for (const left of [['notify'], ['dashboard'], ['notify', 'dashboard']]) expect(await goOn(left)).toBeUndefined();
  // The control: with the worker alone they end with it.
  expect(await goOn([])).toContain('PayoutsPaused');

  // Without Redis, an exporter says so, and shows no old numbers.
  await redis.stop();
  const [without] = (await rig.scrape()).scrapes;
  expect(without?.text).toContain('payouts_redis_up 0');
  expect(without?.text).not.toContain('payouts_paused{');
});
