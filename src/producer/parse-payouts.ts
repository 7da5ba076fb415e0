import { InvalidInputError, type Problem } from '../errors.js';
import { parseInput } from '../fields.js';
import { payoutInputSchema, type NewPayout, type PayoutInput } from '../ledger/payout.js';
import type { PayoutSigner } from './payout-signer.js';

/**
 * Checks one payout, and signs it where a signer is given. What is returned is the payout as it is now: its metadata is a copy,
 * since the application may change its own object before the ledger has it.
 * @throws InvalidInputError naming field, rule and value
 */
export function parsePayout(input: PayoutInput, signer: PayoutSigner | undefined): NewPayout {
  const parsed = parseInput(payoutInputSchema, input);
  const { metadata } = parsed;
  const payout =
    metadata === undefined
      ? parsed
      : { ...parsed, metadata: JSON.parse(JSON.stringify(metadata)) as NonNullable<NewPayout['metadata']> };
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
      const payout = parseInput(payoutInputSchema, input);
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
