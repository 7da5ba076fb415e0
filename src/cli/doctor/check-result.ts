import { within } from '../../base/clock.js';

export interface CheckResult {
  readonly name: string;
  /** Set for a check of one account. */
  readonly platformId?: number;
  /** `problem`: payouts cannot be sent, or a safeguard is missing. `warning`: an operator should know. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly fix?: string;
}

export function ok(name: string, detail: string): CheckResult {
  return { name, status: 'ok', detail };
}

export function warning(name: string, detail: string, fix: string): CheckResult {
  return { name, status: 'warning', detail, fix };
}

export function problem(name: string, detail: string, fix: string): CheckResult {
  return { name, status: 'problem', detail, fix };
}

export type Check = readonly [name: string, run: () => Promise<CheckResult | readonly CheckResult[]>];

/** Reading the journals of weeks takes seconds. */
const CHECK_WITHIN_MS = 30_000;

/** A failed check, as when Redis becomes unavailable, gives a result, and the others run. */
export async function* runEach(checks: readonly Check[]): AsyncGenerator<CheckResult> {
  for (const [name, run] of checks) {
    try {
      const found = await within(CHECK_WITHIN_MS, run());
      const detail = `no result within ${CHECK_WITHIN_MS / 1_000} s: a disk or Redis does not answer`;
      if (found === undefined) yield problem(name, detail, 'Check the disk of SEND_JOURNAL_DIR, and Redis.');
      else yield* [found].flat();
    } catch (error) {
      const fix = 'Run `payouts doctor` again; if it persists, check Redis and its log.';
      yield problem(name, (error as Error).message, fix);
    }
  }
}
