import { InvalidInputError, type Problem } from '../errors.js';
import { parseInput } from '../fields.js';
import { payoutInputSchema, type NewPayout, type PayoutInput } from '../ledger/payout.js';
import type { PayoutSigner } from './payout-signer.js';

/**
 * Checks one payout, and signs it where a signer is given.
 * @throws InvalidInputError naming field, rule and value
 */
export function parsePayout(input: PayoutInput, signer: PayoutSigner | undefined): NewPayout {
  const payout = asItIsNow(parseInput(payoutInputSchema, input));
  return signer === undefined ? payout : signer.sign(payout);
}

/**
 * Checks payouts that are given together.
 * @throws InvalidInputError naming every problem with the payout's index, such as `[3].amount`
 */
export function parsePayouts(inputs: readonly PayoutInput[], signer: PayoutSigner | undefined): NewPayout[] {
  const payouts: NewPayout[] = [];
  const problems: Problem[] = [];
  for (const [index, input] of inputs.entries()) {
    try {
      const payout = asItIsNow(parseInput(payoutInputSchema, input));
      signer?.check(payout);
      payouts.push(payout);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of error.problems) problems.push({ field: `[${index}].${field}`, message });
    }
  }
  if (problems.length > 0) throw new InvalidInputError(problems);
  return payouts;
}

/** With a copy of its metadata, since the application may change its own object before the ledger has it. */
function asItIsNow(payout: NewPayout): NewPayout {
  const { metadata } = payout;
  if (metadata === undefined) return payout;
  return { ...payout, metadata: JSON.parse(JSON.stringify(metadata)) as typeof metadata };
}
