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
  /** Its keys at each reading; undefined if signing is not required. */
  readonly keyring: Pick<Keyring, 'keys'> | undefined;
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly logger: Logger;
}

/**
 * An account's policy as last read. Properties taken in one statement belong together: a later reading never changes
 * them.
 */
export class CurrentPolicy implements LoadedPolicy {
  /**
   * Sends of this time must be known at the start, ms: no rule read later has a longer window. At least a day, so that
   * a first daily cap needs no restart.
   */
  readonly longestWindowMs: number;
  readonly #options: CurrentPolicyOptions;
  #loaded: LoadedPolicy;
  #reloadTrouble: string | undefined;
  #hashes: string[] = [];

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

  /** Hashes of the policies loaded since the last call, including the first. */
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

  /** Why the last reading failed: the policy before it still counts. */
  get reloadTrouble(): string | undefined {
    return this.#reloadTrouble;
  }

  /** Reads the file again. An invalid file changes nothing and is reported. */
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

/** A window that begins before the first known send would count too little. @throws InvalidConfigError */
function requireKnownSends({ policy, file }: LoadedPolicy, longestMs: number): void {
  const problems = windowsOf(policy).flatMap((withinMs, index): Problem[] => {
    if (withinMs <= longestMs) return [];
    const message = `is ${formatSpan(withinMs)}, and this worker knows the sends of the last ${formatSpan(longestMs)}. Restart it: a longer window needs earlier sends, which are read at the start`;
    return [{ field: FIELD, message: `${file}: rules.${index}.cap.within ${message}` }];
  });
  if (problems.length > 0) throw new InvalidConfigError(problems);
}

/** @throws InvalidConfigError with the problems of every account */
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
