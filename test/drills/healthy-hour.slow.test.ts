import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { PayoutProducer } from '../../src/control/payout-producer.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, testKey } from '../control/support/keys.js';
import { serve } from '../dashboard/support/running-dashboard.js';
import { Random } from '../doubles/random.js';
import { until } from '../support/until.js';
import { judgeSilence, readSamples, shift, type InputSeries, type Snapshot } from '../told/alerts.js';
import { Rig } from '../told/rig.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';

const EXAMPLES = new URL('../../examples/', import.meta.url);
/** `npm run healthy-hour` takes sixty. */
const MINUTES = Number(process.env['HEALTHY_MINUTES'] ?? '2');
const SCRAPE_EVERY_S = 15;

it(
  `no alert fires in ${MINUTES} minutes of a healthy system with examples/policy.yaml and default settings`,
  async () => {
    const webhook = closeAfterTest(await serve((_request, response) => response.end()));
    const latency = { latencyBeforeMs: { min: 20, max: 120 }, latencyAfterMs: { min: 20, max: 180 } };
    const rig = closeAfterTest(await Rig.open({ sandbox: { ...latency, settleAfterMs: 12_000 } }));
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
      await judgeSilence(toSeries(scrapes), SCRAPE_EVERY_S, (scrapes.length - 1) * SCRAPE_EVERY_S),
    ).toBeUndefined();
  },
  (MINUTES + 3) * 60_000,
);

/** Keys of a shop, a worker and three approvers, and the example's policy, in which the approvers are a group. */
async function prepareControl({ world: { dir }, environment, platformId }: Rig): Promise<void> {
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
    PAYOUT_WORKER_KEY_FILE: await writePrivateKey(join(dir, 'worker.pem'), testKey(2)),
    PAYOUT_WORKER_KEY_NAME: worker.name,
    PAYOUT_POLICY_FILE: join(dir, 'policy.yaml'),
  });
}

const ORDER_EVERY_MS = 10_000;

/** Small payouts to known customers mostly; what the policy delays comes in between. @returns how many */
async function trade(producer: PayoutProducer, end: AbortSignal): Promise<number> {
  const random = new Random(20_300_131);
  let enqueued = 0;
  const order = async (amount: string, name: string, paymentId = 6): Promise<void> => {
    const payment = { paymentId, amount, addressTo: `wallet-${name}xxxxxxxxxxxxxxxxxxxx` };
    await producer.enqueue({ payoutId: `order-${(enqueued += 1)}`, ...payment });
  };
  const orderSome = async (): Promise<void> => {
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

const pass = async (ms: number, end: AbortSignal): Promise<boolean> =>
  delay(ms, true, { signal: end }).catch(() => false);

async function keepScraping(rig: Rig, end: AbortSignal): Promise<Snapshot[]> {
  const scrapes: Snapshot[] = [];
  for (const startedAt = performance.now(); !end.aborted;) {
    scrapes.push(await rig.scrape());
    await pass(startedAt + scrapes.length * SCRAPE_EVERY_S * 1_000 - performance.now(), end);
  }
  return scrapes;
}

/** A series that one scrape lacks is stale, as Prometheus marks it. */
function toSeries(scrapes: readonly Snapshot[]): InputSeries[] {
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
