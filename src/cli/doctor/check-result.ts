/** The result of one check of `payouts doctor`. */
export interface CheckResult {
  readonly name: string;
  /** The account, for a check of one account. */
  readonly platformId?: number;
  /** `problem`: payouts cannot be sent, or a safeguard is missing. `warning`: they can, but an operator should know. */
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
