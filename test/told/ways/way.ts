import type { HEADLINES } from '../../../src/operator/account-headline.js';
import type { STOPS } from '../../../src/operator/stops.js';
import { alertRules } from '../alerts.js';
import type { Rig, RigOptions } from '../rig.js';

/** One way in which payouts can stand still, and the places that show it to an operator. */
export type Way = RigOptions &
  Readonly<{
    name: string;
    prepare?: (rig: Rig) => Promise<void>;
    /** Brings it about, beside a healthy worker that holds the lease and was scraped. */
    happens: (rig: Rig) => Promise<unknown>;
    told: Told;
    /** If it is one of the stops of an account: it is said in the words, and with the runbook, of that. */
    stop?: keyof typeof STOPS;
    /** What it counts goes on at the rate since it began, not at that of the last seconds. */
    repeats?: true;
    /** In the simulated time of the alert rules. @defaultValue 60 */
    minutes?: number;
  }>;

export type Told = Readonly<{
  /** `sending` and `idle`: only the other places show it. */
  headline: keyof typeof HEADLINES;
  /** Exactly these rules of docs/alerts.yml fire, the one that answers first. */
  alerts: readonly string[];
  /** Of the worker, with a part of the body; `none` where no process listens. */
  readyz: Readonly<{ status: 200 | 503 | 'none'; words: string }>;
  /** A warning where doctor exits with 0, else a problem. */
  doctor: Readonly<{ exit: 0 | 1; check: string; words: string }>;
  /** That of the first alert. */
  runbook: string;
}>;

/** @param names - of the alerts, without `Payouts` */
export function told(
  headline: Told['headline'],
  names: string,
  [status, body]: readonly [Told['readyz']['status'], string],
  [exit, check, words]: readonly [Told['doctor']['exit'], string, string],
): Told {
  const alerts = names.split(' ').map((name) => `Payouts${name}`);
  const rule = alertRules.find(({ alert }) => alert === alerts[0]);
  const runbook = /([\w-]+)\.md$/.exec(rule?.annotations.runbook ?? '')?.[1] ?? '';
  return { headline, alerts, readyz: { status, words: body }, doctor: { exit, check, words }, runbook };
}

/** `/readyz` and doctor use the same words. */
export const alike = (
  headline: Told['headline'],
  names: string,
  status: 200 | 503,
  [exit, check]: readonly [Told['doctor']['exit'], string],
  words: string,
) => told(headline, names, [status, words], [exit, check, words]);

/** The worker goes on, and warns; doctor repeats its words. */
export const warned = (headline: Told['headline'], names: string, words: string) =>
  alike(headline, names, 200, [0, 'worker'], words);
