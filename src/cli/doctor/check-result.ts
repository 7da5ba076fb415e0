import { within } from '../../base/clock.js';

export interface Finding {
  /** `problem`: payouts cannot be sent, or a safeguard is missing. `warning`: an operator should know. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly fix?: string;
  readonly platformId?: number;
}

export interface CheckResult extends Finding {
  readonly name: string;
}

export function ok(detail: string): Finding {
  return { status: 'ok', detail };
}

export function warning(detail: string, fix: string): Finding {
  return { status: 'warning', detail, fix };
}

export function problem(detail: string, fix: string): Finding {
  return { status: 'problem', detail, fix };
}

export type Check = readonly [name: string, run: () => Promise<Finding | readonly Finding[]>];

/** Reading the journals of weeks takes seconds. */
const CHECK_WITHIN_MS = 30_000;

/** Called before each check. @returns whether to run it */
export type BeginCheck = (name: string, platformId?: number) => boolean;

/** A failed check, as when Redis becomes unavailable, gives a result, and the others run. */
export async function* runEach(
  checks: readonly Check[],
  begin: BeginCheck,
  platformId?: number,
): AsyncGenerator<CheckResult> {
  for (const [name, run] of checks) {
    if (!begin(name, platformId)) continue;
    try {
      const found = (await within(CHECK_WITHIN_MS, run())) ?? hanging(CHECK_WITHIN_MS);
      yield* [found].flat().map((finding) => ({ name, ...finding }));
    } catch (error) {
      const fix = 'Run `payouts doctor` again; if it persists, check Redis and its log.';
      yield { name, ...problem((error as Error).message, fix) };
    }
  }
}

export function hanging(afterMs: number): Finding {
  const detail = `no result within ${afterMs / 1_000} s: a disk or Redis does not answer`;
  return problem(
    detail,
    'Check the disk that it reads, such as that of SEND_JOURNAL_DIR, and Redis: docs/runbooks/disk.md.',
  );
}
