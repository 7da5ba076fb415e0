import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKeyGauges } from '../../src/worker/monitoring/account-gauges.js';
import { createWorkerMetrics, type WorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { keyEntry, keyringOf, testKey, type KeyEntry } from '../control/support/keys.js';
import { judgeAlerts } from './support/firing-alerts.js';
import { extrapolate, type Snapshot } from './support/series.js';

/** The alerts about keys and signatures, over what the metrics of a worker say. */

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const MINUTES = 60;
const WALL_AT = Date.parse('2030-01-31T09:00:00Z') / 1_000;
const REFUSALS = 'payouts_signature_failures_total';
const UP = 'payouts_build_info{version="1"} 1\n';

/** A keyring that was read. */
function read(...keys: readonly KeyEntry[]): Parameters<ReturnType<typeof createKeyGauges>>[0] {
  return { keys: keyringOf(...keys).keys, reloadTrouble: undefined };
}

function snapshot(at: number, text: string): Snapshot {
  return { at, wallAt: WALL_AT + at, scrapes: [{ instance: 'host-1:9464', text: `${UP}${text}` }] };
}

/** A worker's gauges with a keyring of which one key ends then. */
async function alertsOf(
  endsInS: number,
  expected: readonly string[],
  changes: Partial<KeyEntry> = {},
): Promise<string | undefined> {
  const registry = new Registry();
  const notAfter = new Date((WALL_AT + endsInS) * 1_000).toISOString();
  const shop = keyEntry(testKey(1), { notAfter, ...changes });
  createKeyGauges(registry)(read(shop, keyEntry(testKey(2), { name: 'ann', role: 'operator' })));
  const text = await registry.metrics();
  const series = extrapolate({ before: snapshot(0, text), since: snapshot(0, text), now: snapshot(1, text) }, MINUTES);
  return judgeAlerts(series, MINUTES, expected);
}

it('a key that ends within 14 days is told, and until a day after', async () => {
  const told = ['PayoutsKeyExpires'];
  expect(await alertsOf(14 * DAY_S + 2 * HOUR_S, [])).toBeUndefined();
  expect(await alertsOf(14 * DAY_S, told)).toBeUndefined();
  expect(await alertsOf(0, told)).toBeUndefined();
  expect(await alertsOf(-DAY_S - HOUR_S, [])).toBeUndefined();
});

it('a key that is revoked or has no end is not', async () => {
  expect(await alertsOf(DAY_S, [], { revoked: true })).toBeUndefined();
  const registry = new Registry();
  createKeyGauges(registry)(read(keyEntry(testKey(1))));
  expect(await registry.metrics()).not.toContain('{key=');
});

it('no key of a keyring before is left', async () => {
  const registry = new Registry();
  const set = createKeyGauges(registry);
  set(read(keyEntry(testKey(1), { notAfter: '2030-02-01T00:00:00Z' })));
  expect(await registry.metrics()).toContain('{key="shop",role="producer"} 1896134400');
  set(undefined);
  expect(await registry.metrics()).not.toContain('shop');
});

it('a keyring that could not be read again is told', async () => {
  const registry = new Registry();
  createKeyGauges(registry)({ keys: [], reloadTrouble: 'is no YAML' });
  const text = await registry.metrics();
  const series = extrapolate({ before: snapshot(0, ''), since: snapshot(0, text), now: snapshot(1, text) }, MINUTES);
  expect(await judgeAlerts(series, MINUTES, ['PayoutsKeysReloadFailed'])).toBeUndefined();
});

/** What a worker counts before and after; Prometheus reads it once a minute. */
async function judgeRefusal(
  refuse: (observer: ReturnType<WorkerMetrics['observe']>) => void,
  expected: readonly string[],
): Promise<string | undefined> {
  const metrics = createWorkerMetrics({ version: '1' });
  const observer = metrics.observe(7);
  const before = snapshot(0, await metrics.registry.getSingleMetricAsString(REFUSALS));
  refuse(observer);
  // It happened once: nothing is counted from then on.
  const since = snapshot(1, await metrics.registry.getSingleMetricAsString(REFUSALS));
  return judgeAlerts(extrapolate({ before, since, now: { ...since, at: 2 } }, MINUTES), MINUTES, expected);
}

it.each(['fields', 'bad_signature', 'wrong_role', 'sent_before', 'resume'])(
  'the first tampering is told: %s',
  async (reason) => {
    const refused = await judgeRefusal(
      (observer) => {
        observer.signatureRefused(reason, true);
      },
      ['PayoutsTampering'],
    );
    expect(refused).toBeUndefined();
  },
);

it('a signature that is missing or has expired is no tampering', async () => {
  const refused = await judgeRefusal((observer) => {
    observer.signatureRefused('unsigned', false);
    observer.signatureRefused('expired', false);
  }, []);
  expect(refused).toBeUndefined();
});
