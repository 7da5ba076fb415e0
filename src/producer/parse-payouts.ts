import { InvalidInputError, type Problem } from '../errors.js';
import { parseInput } from '../fields.js';
import { payoutInputSchema, type NewPayout, type PayoutInput } from '../ledger/payout.js';
import { checkRecipient, type RecipientRule } from './check-recipient.js';
import type { PayoutSigner } from './producer-control.js';

/** Checks a payout to enqueue or sign. @throws InvalidInputError naming field, rule and value */
export function parsePayout(input: unknown, rule: RecipientRule): NewPayout {
  const payout = parseInput(payoutInputSchema, input);
  checkRecipient(payout, rule);
  return asItIsNow(payout);
}

/** @throws InvalidInputError naming every problem with the payout's index, such as `[3].amount` */
export function parsePayouts(
  inputs: readonly PayoutInput[],
  rule: RecipientRule,
  signer: Pick<PayoutSigner, 'check'> | undefined,
): NewPayout[] {
  return checkEach(inputs, (input) => {
    const payout = parsePayout(input, rule);
    signer?.check(payout);
    return payout;
  });
}

export function checkEach<Given, Result>(all: readonly Given[], check: (one: Given) => Result): Result[] {
  const results: Result[] = [];
  const problems: Problem[] = [];
  for (const [index, one] of all.entries()) {
    try {
      results.push(check(one));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of error.problems) problems.push({ field: `[${index}].${field}`, message });
    }
  }
  if (problems.length > 0) throw new InvalidInputError(problems);
  return results;
}

/** Copies the metadata, because the application may change its object before the ledger has it. */
function asItIsNow(payout: NewPayout): NewPayout {
  const { metadata } = payout;
  if (metadata === undefined) return payout;
  return { ...payout, metadata: JSON.parse(JSON.stringify(metadata)) as typeof metadata };
}
