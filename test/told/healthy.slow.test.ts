import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { PayoutProducer } from '../../src/control/payout-producer.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, testKey } from '../control/support/keys.js';
import { serve } from '../dashboard/support/running-dashboard.js';
import { Random } from '../doubles/random.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';
import { extrapolate, firesThroughout, judgeAlerts, judgeEvery, readSamples, shift } from './alerts.js';
import type { Snapshot } from './alerts.js';
import { Rig, type RigOptions } from './rig.js';

/** Where all is well nobody is told anything, and nothing ends because its worker died. */

const openRig = async (options?: RigOptions) => closeAfterTest(await Rig.open(options));

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
  const goOn = async (left: readonly string[]) => {
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

const EXAMPLES = new URL('../../examples/', import.meta.url);
/** `npm run healthy-hour` takes sixty. */
const MINUTES = Number(process.env['HEALTHY_MINUTES'] ?? '2');
const SCRAPE_EVERY_S = 15;

it(
  `no alert fires in ${MINUTES} minutes of a healthy system with examples/policy.yaml and default settings`,
  async () => {
    const webhook = closeAfterTest(await serve((_request, response) => response.end()));
    const latency = { latencyBeforeMs: { min: 20, max: 120 }, latencyAfterMs: { min: 20, max: 180 } };
    const rig = await openRig({ sandbox: { ...latency, settleAfterMs: 12_000 } });
    await prepareControl(rig);
    rig.environment['NOTIFY_URL'] = webhook.url;
    const [port = 0] = await Promise.all(
      (['worker', 'dashboard', 'notify'] as const).map(async (name) => rig.startExporter(name)),
    );
    await until('it may send', async () => (await rig.readyz({ port })).body.includes('"role":"sender"'));
    const producer = closeAfterTest(rig.openSigningProducer());

    const end = AbortSignal.timeout(MINUTES * 60_000);
    const [enqueued, scrapes] = await Promise.all([trade(producer, end), keepScraping(rig, end)]);
    await until('nothing waits to be sent', async () => {
      const { queued, sending } = await producer.stats();
      return queued + sending === 0;
    });
    const { completed, in_progress: inProgress, held } = await producer.stats();
    expect(completed + inProgress + held).toBe(enqueued);
    expectPace(rig.world.sandbox);
    // Each look finds all three.
    expect(scrapes.filter(({ scrapes: found }) => found.length < 3)).toEqual([]);
    expect(
      await judgeEvery(SCRAPE_EVERY_S, {
        series: toSeries(scrapes),
        totalS: (scrapes.length - 1) * SCRAPE_EVERY_S,
        alerts: [],
      }),
    ).toBeUndefined();
  },
  (MINUTES + 3) * 60_000,
);

/** Keys, and the example's policy, in which the approvers are a group. */
async function prepareControl({ world: { dir }, environment, platformId }: Rig) {
  const approvers = ['alice', 'bob', 'carol'].map((person, index) =>
    keyEntry(testKey(index + 3), { name: person, role: 'approver', person }),
  );
  const worker = { name: 'worker-1', role: 'worker', person: 'Host 1' } as const;
  const keys = [keyEntry(testKey(1)), keyEntry(testKey(2), worker), ...approvers];
  for (const name of ['policy.yaml', 'deny.txt']) {
    const text = await readFile(new URL(name, EXAMPLES), 'utf8');
    // A copy would have the checkout's mode, and the worker trusts no policy that others can write.
    await writeFile(join(dir, name), text.replace("'4242'", `'${platformId}'`), { mode: 0o600 });
  }
  Object.assign(environment, {
    PAYOUT_KEYS_FILE: await writeKeyring(join(dir, 'keys.json'), keys),
    PAYOUT_WORKER_SIGNER: await writePrivateKey(join(dir, 'worker.pem'), testKey(2)),
    PAYOUT_WORKER_SIGNER_NAME: worker.name,
    PAYOUT_POLICY_FILE: join(dir, 'policy.yaml'),
  });
}

const ORDER_EVERY_MS = 10_000;

/** Small payouts to known customers mostly. @returns how many */
async function trade(producer: PayoutProducer, end: AbortSignal) {
  const random = new Random(20_300_131);
  let enqueued = 0;
  const order = async (amount: string, name: string, paymentId = 6) => {
    const payment = { paymentId, amount, addressTo: `wallet-${name}xxxxxxxxxxxxxxxxxxxx` };
    await producer.enqueue({ payoutId: `order-${(enqueued += 1)}`, ...payment });
  };
  const orderSome = async () => {
    const customer = random.whole(1, 60);
    const isLargeForNew = random.chance(0.02);
    const usd = isLargeForNew ? random.between(210, 900) : random.between(3, 60);
    // No two orders are alike, since the gateway takes a repetition for a payment made twice.
    const amount = `${usd.toFixed(2)}${String(enqueued).padStart(4, '0')}`;
    await order(amount, isLargeForNew ? `new-${enqueued}` : `customer-${customer}`, random.pick([6, 6, 6, 7, 8]));
  };
  await order('40', 'supplier');
  // Longer than it takes until the first payout is sent.
  await pass(50_000, end);
  do {
    const count = random.chance(0.1) ? random.whole(2, 6) : 1;
    for (let made = 0; made < count; made += 1) await orderSome();
  } while (await pass(random.heavyTail(ORDER_EVERY_MS / 3, 6 * ORDER_EVERY_MS), end));
  return enqueued;
}

const pass = async (ms: number, end: AbortSignal) => delay(ms, true, { signal: end }).catch(() => false);

async function keepScraping(rig: Rig, end: AbortSignal) {
  const scrapes: Snapshot[] = [];
  for (const startedAt = performance.now(); !end.aborted;) {
    scrapes.push(await rig.scrape());
    await pass(startedAt + scrapes.length * SCRAPE_EVERY_S * 1_000 - performance.now(), end);
  }
  return scrapes;
}

/** A series that one scrape lacks is stale, as Prometheus marks it. */
function toSeries(scrapes: readonly Snapshot[]) {
  const all = new Map<string, string[]>();
  const sinceS = scrapes[0]?.wallAt ?? 0;
  scrapes.forEach((scrape, turn) => {
    for (const [series, sample] of readSamples(scrape)) {
      const found = all.get(series) ?? [];
      const absent = Array.from({ length: turn - found.length }, () => (found.length === 0 ? '_' : 'stale'));
      all.set(series, [...found, ...absent, String(shift(sample, sinceS)?.value)]);
    }
  });
  return [...all].map(([series, found]) => {
    const end = found.length < scrapes.length ? ['stale'] : [];
    return { series, values: [...found, ...end].join(' ') };
  });
}
