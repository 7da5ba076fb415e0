import { createHash } from 'node:crypto';
import type { SendAttempt } from './sender-ledger.js';

/**
 * The name by which the payment of an attempt may be found at the gateway. It is made from the token, so it is new for
 * each attempt and tells nothing of the payout. Token and attempt are in the ledger and in the journal before the first
 * byte leaves, so it can be made again after a crash.
 * @returns 32 hexadecimal digits
 */
export function orderIdOf({ payoutId, attempt, token }: SendAttempt): string {
  return createHash('sha256')
    .update(JSON.stringify([payoutId, attempt, token]))
    .digest('hex')
    .slice(0, 32);
}
