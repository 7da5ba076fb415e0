import { createServer } from 'node:http';
import { Counter, Gauge, Registry } from 'prom-client';
import type { Clock } from '../base/clock.js';
import { answerHealth, listen } from '../base/health-server.js';
import type { NotifierObserver } from './account-notifier.js';

/** The status of `payouts notify`. The worker reports its lag, also after this process ends. */
export class NotifyStatus {
  readonly registry = new Registry();
  readonly #delivered: Counter<'platform_id'>;
  readonly #failures: Counter<'platform_id'>;
  readonly #failing: Gauge<'platform_id'>;
  readonly #reasons = new Map<number, string>();
  /** By platformId, monotonic ms. */
  readonly #workedAt = new Map<number, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    const [labelNames, registers] = [['platform_id'] as const, [this.registry]];
    const name = (suffix: string): string => `payouts_notifications_${suffix}`;
    this.#delivered = new Counter({ name: name('delivered_total'), help: 'Delivered.', labelNames, registers });
    this.#failures = new Counter({ name: name('failures_total'), help: 'Failed attempts.', labelNames, registers });
    this.#failing = new Gauge({
      name: name('failing'),
      help: '1 while the last attempt failed, and the notification waits for the next one.',
      labelNames,
      registers,
    });
    const [workedAt, now] = [this.#workedAt, () => clock.now()];
    new Gauge({
      name: name('heartbeat_age_seconds'),
      help: 'Since the events were read last, or a notification was tried: old if nobody would be told of anything.',
      labelNames,
      registers,
      collect() {
        for (const [platformId, at] of workedAt) this.set({ platform_id: String(platformId) }, (now() - at) / 1_000);
      },
    });
  }

  observe(platformId: number): NotifierObserver {
    const labels = { platform_id: String(platformId) };
    this.#delivered.inc(labels, 0);
    this.#failures.inc(labels, 0);
    this.#failing.set(labels, 0);
    const worked = (): void => void this.#workedAt.set(platformId, this.#clock.now());
    worked();
    return {
      worked,
      delivered: () => {
        this.#delivered.inc(labels);
        this.#failing.set(labels, 0);
        this.#reasons.delete(platformId);
      },
      failed: (reason) => {
        this.#failures.inc(labels);
        this.#failing.set(labels, 1);
        this.#reasons.set(platformId, reason);
      },
    };
  }

  get reasons(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#reasons);
  }
}

interface NotifyServer {
  readonly url: string;
  close(): void;
}

/** @throws InvalidConfigError if it cannot listen */
export async function startNotifyServer(status: NotifyStatus, host: string, port: number): Promise<NotifyServer> {
  const server = createServer(
    answerHealth(status.registry, () => {
      const { reasons } = status;
      const delivers = Object.keys(reasons).length === 0;
      return [delivers, { delivers, reasons }];
    }),
  );
  const url = `http://${await listen(server, host, port, 'NOTIFY_HEALTH_PORT')}`;
  return {
    url,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
