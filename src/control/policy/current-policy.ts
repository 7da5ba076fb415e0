import type { Clock } from '../../base/clock.js';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { Keyring } from '../keys/keyring.js';
import { formatSpan } from './describe-rule.js';
import { type LoadedPolicy, readPolicyFile } from './policy-file.js';
import type { Policy } from './policy.js';

const FIELD = 'PAYOUT_POLICY_FILE';
const DAY_MS = 86_400_000;

interface CurrentPolicyOptions {
  readonly file: string;
  readonly platformId: number;
  /** As it is at each reading; undefined where nothing has to be signed. */
  readonly keyring: Pick<Keyring, 'keys'> | undefined;
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly logger: Logger;
}

/**
 * The policy of an account as its file was read last, so that it can be changed while the worker runs. What is taken out of
 * it in one statement belongs together: a later reading changes nothing of it.
 */
export class CurrentPolicy implements LoadedPolicy {
  /**
   * Sends of this time have to be known at the start, ms: no rule that is read later has a longer window. A day at least, so
   * that a first daily cap needs no restart.
   */
  readonly longestWindowMs: number;
  readonly #options: CurrentPolicyOptions;
  #loaded: LoadedPolicy;
  #reloadTrouble: string | undefined;
  #hashes: string[] = [];

  /** @throws InvalidConfigError when the file cannot be used, see `readPolicyFile` */
  constructor(options: CurrentPolicyOptions) {
    this.#options = options;
    this.#loaded = this.#read();
    this.longestWindowMs = Math.max(DAY_MS, ...windowsOf(this.policy));
    this.#tell('payouts that the policy does not let pass are held');
  }

  get policy(): Policy {
    return this.#loaded.policy;
  }

  get hash(): string {
    return this.#loaded.hash;
  }

  get file(): string {
    return this.#loaded.file;
  }

  /** The hashes of the policies that were loaded since the last call, the first included: for those who are told of each. */
  takeLoaded(): string[] {
    const hashes = this.#hashes;
    this.#hashes = [];
    return hashes;
  }

  get warnings(): readonly string[] {
    return this.#loaded.warnings;
  }

  get isListed(): LoadedPolicy['isListed'] {
    return this.#loaded.isListed;
  }

  /** Why the file could not be used when it was read last: the policy is the one before. Undefined where it could. */
  get reloadTrouble(): string | undefined {
    return this.#reloadTrouble;
  }

  /** Reads the file again: it counts from the next decision on. One that cannot be used changes nothing, and is reported. */
  reload(): void {
    try {
      const loaded = this.#read();
      requireKnownSends(loaded, this.longestWindowMs);
      this.#loaded = loaded;
      this.#reloadTrouble = undefined;
      this.#tell('the policy was read again');
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      this.#reloadTrouble = error.problems.map(({ message }) => message).join('; ');
      this.#options.logger.error(
        { error: this.#reloadTrouble, policyHash: this.hash },
        'the policy could not be read again: the one before still counts',
      );
    }
  }

  #read(): LoadedPolicy {
    const { file, platformId, keyring, clock } = this.#options;
    return readPolicyFile(file, { platformId, keyring, field: FIELD, now: clock.wallNow() });
  }

  #tell(message: string): void {
    const { logger } = this.#options;
    const { file, hash, policy, warnings } = this.#loaded;
    const rules = policy.rules.map(({ name }) => name);
    this.#hashes.push(hash);
    logger.info({ policyFile: file, policyHash: hash, default: policy.uncovered, rules }, message);
    for (const warning of warnings) logger.warn({ policyFile: file }, `the policy: ${warning}`);
  }
}

function windowsOf({ rules }: Policy): number[] {
  return rules.map(({ cap }) => cap?.withinMs ?? 0);
}

/** A window that begins before the first send that is known would count too little. @throws InvalidConfigError */
function requireKnownSends({ policy, file }: LoadedPolicy, longestMs: number): void {
  const problems = windowsOf(policy).flatMap((withinMs, index): Problem[] => {
    if (withinMs <= longestMs) return [];
    const message = `is ${formatSpan(withinMs)}, and this worker knows the sends of the last ${formatSpan(longestMs)}. Restart it: a longer window needs earlier sends, which are read at the start`;
    return [{ field: FIELD, message: `${file}: rules.${index}.cap.within ${message}` }];
  });
  if (problems.length > 0) throw new InvalidConfigError(problems);
}

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
