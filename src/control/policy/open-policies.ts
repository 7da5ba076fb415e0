import type { Clock } from '../../clock.js';
import { InvalidConfigError, type Problem } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { Keyring } from '../keys/keyring.js';
import { CurrentPolicy } from './current-policy.js';

/**
 * Reads the policies of those accounts that have one, by account.
 * @throws InvalidConfigError with the problems of all of them
 */
export function openPolicies(
  accounts: readonly { readonly platformId: number; readonly policyFile?: string | undefined }[],
  context: {
    readonly keyring: Pick<Keyring, 'keys'> | undefined;
    readonly clock: Pick<Clock, 'wallNow'>;
    readonly logger: Logger;
  },
): ReadonlyMap<number, CurrentPolicy> {
  const policies = new Map<number, CurrentPolicy>();
  const problems: Problem[] = [];
  for (const { platformId, policyFile: file } of accounts) {
    if (file === undefined) continue;
    const logger = context.logger.child({ platformId });
    try {
      policies.set(platformId, new CurrentPolicy({ ...context, file, platformId, logger }));
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return policies;
}
