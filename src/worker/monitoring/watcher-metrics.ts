import { Counter, type Registry } from 'prom-client';
import { watcherFailures } from '../../failsafe.js';

/** Makes the counters of what was lost because a logger, an observer or the telemetry failed: of the whole process. */
export function createWatcherMetrics(registry: Registry): void {
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
