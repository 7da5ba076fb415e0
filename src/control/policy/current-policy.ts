import { DAY_MS } from '../../base/clock.js';
import type { Clock } from '../../base/clock.js';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { CurrentFile } from '../keys/current-file.js';
import type { Keyring } from '../keys/keyring.js';
import { type LoadedPolicy, readPolicyFile } from './policy-file.js';
import type { Policy } from './policy.js';
import { formatSpan } from './values.js';

const FIELD = 'PAYOUT_POLICY_FILE';
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
  readonly #logger: Logger;
  readonly #current: CurrentFile<LoadedPolicy>;
  readonly #hashes: string[] = [];

  constructor(read: () => LoadedPolicy, logger: Logger) {
    this.#logger = logger;
    let longestMs = Infinity;
    this.#current = new CurrentFile(() => requireKnownSends(read(), longestMs));
    longestMs = Math.max(DAY_MS, ...windowsOf(this.policy));
    this.longestWindowMs = longestMs;
    this.#log('payouts that the policy does not let pass are held');
  }

  get policy(): Policy {
    return this.#current.content.policy;
  }

  get hash(): string {
    return this.#current.content.hash;
  }

  get file(): string {
    return this.#current.content.file;
  }

  get warnings(): readonly string[] {
    return this.#current.content.warnings;
  }

  get isListed(): LoadedPolicy['isListed'] {
    return this.#current.content.isListed;
  }

  get reloadTrouble(): string | undefined {
    return this.#current.trouble;
  }

  /** Hashes of the policies loaded since the last call, including the first. */
  takeLoaded(): string[] {
    return this.#hashes.splice(0);
  }

  /** Reads the file again. An invalid file changes nothing and is reported. */
  reload(): void {
    if (this.#current.reload()) this.#log('the policy was read again');
    else {
      const facts = { error: this.reloadTrouble, policyHash: this.hash };
      this.#logger.error(facts, 'the policy could not be read again: the one before still counts');
    }
  }

  #log(message: string): void {
    const { file, hash, policy, warnings } = this;
    const rules = policy.rules.map(({ name }) => name);
    this.#hashes.push(hash);
    this.#logger.info({ policyFile: file, policyHash: hash, default: policy.uncovered, rules }, message);
    for (const warning of warnings) this.#logger.warn({ policyFile: file }, `the policy: ${warning}`);
  }
}

function windowsOf({ rules }: Policy): number[] {
  return rules.map(({ cap }) => cap?.withinMs ?? 0);
}

/** A window that begins before the first known send would count too little. @throws InvalidConfigError */
function requireKnownSends(loaded: LoadedPolicy, longestMs: number): LoadedPolicy {
  const problems = windowsOf(loaded.policy).flatMap((withinMs, index): Problem[] => {
    if (withinMs <= longestMs) return [];
    const message = `is ${formatSpan(withinMs)}, and this worker knows the sends of the last ${formatSpan(longestMs)}. Restart it: a longer window needs earlier sends, which are read at the start`;
    return [{ field: FIELD, message: `${loaded.file}: rules.${index}.cap.within ${message}` }];
  });
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return loaded;
}

/**
 * @param keyring - undefined if signing is not required
 * @throws InvalidConfigError with the problems of every account
 */
export function openPolicies(
  accounts: readonly { readonly platformId: number; readonly policyFile?: string | undefined }[],
  keyring: Pick<Keyring, 'keys'> | undefined,
  clock: Pick<Clock, 'wallNow'>,
  logger: Logger,
): ReadonlyMap<number, CurrentPolicy> {
  const policies = new Map<number, CurrentPolicy>();
  const problems: Problem[] = [];
  for (const { platformId, policyFile: file } of accounts) {
    if (file === undefined) continue;
    const read = (): LoadedPolicy => readPolicyFile(file, { platformId, keyring }, FIELD, clock.wallNow());
    try {
      policies.set(platformId, new CurrentPolicy(read, logger.child({ platformId })));
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return policies;
}
