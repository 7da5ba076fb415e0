import { Counter, Registry } from 'prom-client';

/** Wrong passwords, as Prometheus reads them at `/metrics` of the dashboard, with the password. */
export interface LoginMetrics {
  readonly registry: Registry;
  readonly failures: Counter;
  readonly refused: Counter;
}

export function createLoginMetrics(): LoginMetrics {
  const registry = new Registry();
  const failures = new Counter({
    name: 'payouts_dashboard_login_failures_total',
    help: 'Requests to the dashboard with a wrong user or password.',
    registers: [registry],
  });
  const refused = new Counter({
    name: 'payouts_dashboard_logins_refused_total',
    help: 'Requests refused unread, because their client had given too many wrong passwords just before.',
    registers: [registry],
  });
  return { registry, failures, refused };
}
