/** What one check of `payouts doctor` found. */
export interface CheckResult {
  readonly name: string;
  /** The account, where the check is about one. */
  readonly platformId?: number;
  /** `problem`: payouts cannot be sent, or a safeguard is gone. `warning`: they can, but somebody should know. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  /** What to do. */
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
