import { PayoutOperator } from '../../operator/payout-operator.js';
import { readAccountOptions } from './account-options.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './name-flags.js';

/**
 * Runs `use` with the operator of the environment's account, and closes it on every way out. Input errors name the flags.
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withOperator<Result>(
  context: CliContext,
  use: (operator: PayoutOperator) => Promise<Result>,
): Promise<Result> {
  const operator = new PayoutOperator(readAccountOptions(context));
  try {
    return await nameFlags(async () => use(operator));
  } finally {
    await operator.close();
  }
}
