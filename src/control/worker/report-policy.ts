import { every, type Clock } from '../../clock.js';
import type { PolicyReport } from '../../ledger/policy-report.js';
import type { Logger } from '../../logger.js';

export interface ReportPolicyOptions {
  readonly describe: () => PolicyReport;
  readonly write: (report: PolicyReport) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const REPORT_EVERY_MS = 10_000;

/** Tells people how much of each window is used, until the signal is aborted. Beside the sends, and never in their way. */
export async function reportPolicy(options: ReportPolicyOptions, signal: AbortSignal): Promise<void> {
  const { describe, write, clock, logger } = options;
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot report what the policy counts');
  };
  await every(REPORT_EVERY_MS, async () => write(describe()), { clock, signal, onError });
}
