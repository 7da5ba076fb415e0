import { readConfig } from '../../config.js';
import { openAccount, type AccountAccess, type PayoutProducerOptions } from '../../queues/open-account.js';
import { PayoutOperator } from '../../operator/payout-operator.js';
import { PayoutProducer } from '../../producer/payout-producer.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './name-flags.js';

/**
 * Runs `use` with the producer of the environment's account, and closes it on every way out.
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withProducer<Result>(
  context: CliContext,
  use: (producer: PayoutProducer) => Promise<Result>,
): Promise<Result> {
  const producer = new PayoutProducer(readAccountOptions(context));
  try {
    return await use(producer);
  } finally {
    await producer.close();
  }
}

/** As {@link withProducer}, for what an operator decides. Input errors name the flags. */
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

/** As {@link withProducer}, for commands that need the account's ledger itself. */
export async function withAccount<Result>(
  context: CliContext,
  use: (account: AccountAccess) => Promise<Result>,
): Promise<Result> {
  const account = openAccount(readAccountOptions(context));
  try {
    return await use(account);
  } finally {
    await account.close();
  }
}

function readAccountOptions({ environment, logger }: CliContext): PayoutProducerOptions {
  const config = readConfig(['REDIS_URL', 'REDIS_REPLICAS', 'GATEWAY_PLATFORM_ID'], environment);
  return {
    redisUrl: config.REDIS_URL,
    redisReplicas: config.REDIS_REPLICAS,
    platformId: config.GATEWAY_PLATFORM_ID,
    logger,
  };
}
