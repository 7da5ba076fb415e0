import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds: a Redis that syncs to its disk answers within some milliseconds. */
const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

/** For Prometheus. Labels are routes and status codes: a client cannot invent new ones. */
export class HttpMetrics {
  readonly registry = new Registry();
  readonly streams: Gauge;
  readonly tokensStale: Gauge;
  readonly #requests: Counter<'route' | 'status'>;
  readonly #seconds: Histogram<'route'>;

  constructor() {
    const registers = [this.registry];
    this.#requests = new Counter({
      name: 'payouts_http_requests_total',
      help: 'Requests by route and status code.',
      labelNames: ['route', 'status'],
      registers,
    });
    this.#seconds = new Histogram({
      name: 'payouts_http_request_seconds',
      help: 'Time from the headers of a request to its response, by route. Event streams are not counted.',
      labelNames: ['route'],
      buckets: BUCKETS,
      registers,
    });
    this.streams = new Gauge({ name: 'payouts_http_streams', help: 'Open event streams.', registers });
    this.tokensStale = new Gauge({
      name: 'payouts_http_tokens_stale',
      help: '1 while the file of tokens cannot be read again: the tokens before it still count.',
      registers,
    });
  }

  count(route: string, status: number): void {
    this.#requests.inc({ route, status });
  }

  observe(route: string, seconds: number): void {
    this.#seconds.observe({ route }, seconds);
  }
}
