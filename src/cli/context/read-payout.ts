import { NotVerifiedError } from '../../errors.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { type Payout, UnreadableRecordError } from '../../ledger/payout.js';

/**
 * A payout as Redis has it: of a record that somebody has altered, the fields may make no sense.
 * @throws NotFoundError; NotVerifiedError when the record cannot be read
 */
export async function readPayout(ledger: PayoutLedger, payoutId: string): Promise<Payout> {
  try {
    return await ledger.require(payoutId);
  } catch (error) {
    if (error instanceof UnreadableRecordError) throw new NotVerifiedError(error.message);
    throw error;
  }
}
