import type { HEADLINES } from '../../src/operator/account-headline.js';
import type { PayoutWorldOptions } from '../worker/support/payout-world.js';
import type { Rig } from './support/rig.js';

/** One way in which payouts can stand still, and the places that show it to an operator. */
export interface Way {
  /** What is wrong. */
  readonly name: string;
  /** Set for the worker and for `payouts doctor`. */
  readonly environment?: Readonly<Record<string, string>>;
  /** How the sandbox gateway behaves. */
  readonly sandbox?: PayoutWorldOptions['sandbox'];
  /** What has to be there before the healthy worker starts. */
  readonly prepare?: (rig: Rig) => Promise<void>;
  /** Brings it about, beside a healthy worker that holds the lease and was scraped. */
  readonly happens: (rig: Rig) => Promise<void>;
  readonly told: Told;
  /**
   * What it counts goes on at the rate since it began; without it, at the rate of the last seconds. For what happens again
   * and again with long waits between.
   */
  readonly repeats?: true;
  /** For how long it lasts in the simulated time of the alert rules. @defaultValue 60 */
  readonly minutes?: number;
}

/** Who tells an operator, and how. */
export interface Told {
  /**
   * The first words of the dashboard and of `payouts status`, by their key. `sending` and `idle`: payouts go out, or none
   * waits, so that only the other places show it.
   */
  readonly headline: keyof typeof HEADLINES;
  /** Exactly these rules of docs/alerts.yml fire, the one that answers first. */
  readonly alerts: readonly string[];
  /** What `/readyz` of the worker responds, with a part of the body; `none` where no process listens. */
  readonly readyz: { readonly status: 200 | 503 | 'none'; readonly words: string };
  /**
   * Exit null: a thread of it hangs, then only a signal ends it. The check tells as a warning (!) where it exits with 0,
   * else as a problem (✗), with a part of what it says.
   */
  readonly doctor: { readonly exit: 0 | 1 | null; readonly check: string; readonly words: string };
  /** The page of docs/runbooks that says what to do: that of the first alert, and of the headline unless all goes on. */
  readonly runbook: string;
}

export function told(
  headline: Told['headline'],
  alerts: readonly string[],
  [status, body]: readonly [Told['readyz']['status'], string],
  [exit, check, words]: readonly [Told['doctor']['exit'], string, string],
  runbook: string,
): Told {
  return { headline, alerts, readyz: { status, words: body }, doctor: { exit, check, words }, runbook };
}
