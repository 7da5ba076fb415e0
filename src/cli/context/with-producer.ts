import { PayoutProducer, type PayoutProducerOptions } from '../../control/payout-producer.js';
import { readAccountOptions } from './account-options.js';
import type { CliContext } from './cli-context.js';

/**
 * Runs `use` with the producer of the environment's account, and closes it on every way out.
 * @param signing - the key of a command that enqueues; the others need none
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withProducer<Result>(
  context: CliContext,
  use: (producer: PayoutProducer) => Promise<Result>,
  signing: Pick<PayoutProducerOptions, 'signingKey' | 'audience' | 'checkAddresses'> = {},
): Promise<Result> {
  const producer = new PayoutProducer({ ...readAccountOptions(context), ...signing });
  try {
    return await use(producer);
  } finally {
    await producer.close();
  }
}
