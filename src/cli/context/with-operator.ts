import type { ActSigner } from '../../control/approvals/act-signer.js';
import { PayoutOperator } from '../../control/payout-operator.js';
import { readAccountOptions } from './account-options.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './name-flags.js';

/**
 * Runs `use` with the operator of the environment's account, and closes it on every way out. Input errors name the flags.
 * @param signer - signs what workers with a keyring require
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withOperator<Result>(
  context: CliContext,
  use: (operator: PayoutOperator) => Promise<Result>,
  signer?: ActSigner,
): Promise<Result> {
  const operator = new PayoutOperator({ ...readAccountOptions(context), signer });
  try {
    return await nameFlags(async () => use(operator));
  } finally {
    await operator.close();
  }
}
