import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { DAY_MS } from '../../base/clock.js';
import { watcherFailures } from '../../base/logger.js';
import type { WorkerObserver } from '../sender/worker-observer.js';
import { createAccountGauges } from './account-gauges.js';
import type { MonitoredAccount } from './account-snapshot.js';
import { createObserverMetrics } from './send-metrics.js';

/** Options of {@link createWorkerMetrics}. */
export interface WorkerMetricsOptions {
  /** Version of this package, for the build metric. */
  readonly version: string;
  /** A payout in progress for longer than this is stuck, in ms. @defaultValue 86400000 */
  readonly stuckAfterMs?: number;
  /** Takes the metrics, once for each registry. @defaultValue one of its own, with the metrics of the process */
  readonly registry?: Registry | undefined;
}

/** Prometheus metrics of a worker process. `docs/alerts.yml` defines the alerts on them. */
export interface WorkerMetrics {
  /** That of the options, or one of its own, so that an application keeps its metrics apart. */
  readonly registry: Registry;
  /** Pass it to `createPayoutWorker` as `observe`. */
  readonly observe: (platformId: number) => WorkerObserver;
  readonly stuckAfterMs: number;
  /** Reads the accounts' states. @returns all metrics as text, also while Redis is unavailable */
  collect(accounts: readonly MonitoredAccount[]): Promise<string>;
}

const MS_PER_S = 1_000;
/**
 * Makes the metrics of one worker process.
 * @example
 * const metrics = createWorkerMetrics({ version });
 * const worker = await createPayoutWorker({ accounts, journalDir, observe: metrics.observe });
 * const text = await metrics.collect(worker.accounts);
 */
export function createWorkerMetrics({
  version,
  stuckAfterMs = DAY_MS,
  registry = ofProcess(),
}: WorkerMetricsOptions): WorkerMetrics {
  new Gauge({
    name: 'payouts_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  }).set({ version, node_version: process.version }, 1);
  new Gauge({
    name: 'payouts_process_start_time_seconds',
    help: 'When this process started, in seconds since 1970. It changes when another one takes its place.',
    registers: [registry],
  }).set(Math.round(performance.timeOrigin) / MS_PER_S);
  createWatcherMetrics(registry);
  const observe = createObserverMetrics(registry);
  const readAccounts = createAccountGauges(registry, stuckAfterMs);
  return {
    registry,
    observe,
    stuckAfterMs,
    async collect(accounts) {
      await readAccounts(accounts);
      return registry.metrics();
    },
  };
}

/** An application's registry has its own metrics of the process. */
function ofProcess(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

function createWatcherMetrics(registry: Registry): void {
  const registers = [registry];
  new Counter({
    name: 'payouts_log_failures_total',
    help: 'Log lines that were lost because they could not be written.',
    registers,
    collect() {
      this.reset();
      this.inc(watcherFailures('logger'));
    },
  });
  new Counter({
    name: 'payouts_watcher_failures_total',
    help: "Calls of the application's observers and telemetry that threw.",
    labelNames: ['watcher'],
    registers,
    collect() {
      this.reset();
      for (const watcher of ['observer', 'telemetry'] as const) this.inc({ watcher }, watcherFailures(watcher));
    },
  });
}
