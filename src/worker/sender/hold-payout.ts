import { RedisUnavailableError } from '../../base/errors.js';
import type { Hold } from '../../ledger/payout.js';
import { cannotKnow, describeUnadopted } from './journal-audit.js';
import type { HeldLease } from './lease-keeper.js';
import type { SendReport } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';

/**
 * Holds one payout; the queue goes on.
 * @param attempt - undefined for any
 */
export async function holdPayout(
  runtime: SenderRuntime,
  { view: { journals } }: Pick<HeldLease, 'view'>,
  payoutId: string,
  attempt: number | undefined,
  hold: Hold,
): Promise<SendReport> {
  const { senderLedger, journal, observer, logger, authority } = runtime;
  if (hold.reason === 'before_birth' && (await cannotKnow(runtime, journals, payoutId))) {
    return { kind: 'unadopted', reason: describeUnadopted(journal.bornAt) };
  }
  try {
    await authority?.keepRejections?.();
  } catch (error) {
    return { kind: 'not_sent', reason: (error as Error).message };
  }
  if (!(await senderLedger.holdPayout(payoutId, attempt, hold)))
    return { kind: 'not_sent', reason: 'the payout changed' };
  const { kind, reason, message, isTampering } = hold;
  if (kind === 'policy' || kind === 'rejection') {
    logger.info(
      { payoutId, rule: hold.rule, reason: message },
      kind === 'policy' ? 'payout held by the policy' : 'payout held: a person rejected it',
    );
    return { kind: 'skipped', state: 'held' };
  }
  if (isTampering) logger.error({ payoutId, reason: message }, 'payout held: it was tampered with');
  else logger.warn({ payoutId, reason: message }, 'payout held');
  observer.signatureRefused(reason, isTampering);
  return { kind: 'skipped', state: 'held' };
}

/** Holds a payout that no `enqueue` accepts, so someone has altered its record. */
export async function holdForGood(
  runtime: SenderRuntime,
  heldLease: Pick<HeldLease, 'view'>,
  payoutId: string,
  message: string,
): Promise<SendReport> {
  const { observer, logger } = runtime;
  const hold: Hold = { kind: 'signature', reason: 'fields', message, isTampering: true };
  try {
    const report = await holdPayout(runtime, heldLease, payoutId, undefined, hold);
    // An unreadable record may be in any state; unless it is queued, its job has nothing to do.
    return report.kind === 'not_sent' ? { kind: 'skipped', state: undefined } : report;
  } catch (error) {
    if (error instanceof RedisUnavailableError) throw error;
    // The script can never read it either. Without a job it blocks no other payout.
    const { message: cause } = error as Error;
    logger.error({ payoutId, reason: message, error: cause }, 'payout skipped: its record in Redis is no payout');
    observer.signatureRefused('fields', true);
    return { kind: 'skipped', state: undefined };
  }
}
