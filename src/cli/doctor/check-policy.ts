import type { Clock } from '../../clock.js';
import type { Keyring } from '../../control/keys/keyring.js';
import { readPolicyFile } from '../../control/policy/policy-file.js';
import { InvalidConfigError } from '../../errors.js';
import { formatCount } from '../../format.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const NAME = 'policy';
const CHECK = 'payouts policy check';

/** Whether an account's policy, where it has one, can be used by a worker that starts now. */
export function* checkPolicy(
  { platformId, policyFile: file }: { readonly platformId: number; readonly policyFile?: string | undefined },
  keyring: Keyring | undefined,
  clock: Pick<Clock, 'wallNow'>,
): Generator<CheckResult> {
  if (file === undefined) return;
  try {
    const { policy, hash, warnings } = readPolicyFile(file, { platformId, keyring, now: clock.wallNow() });
    for (const each of warnings) {
      yield warning(NAME, `${file}: ${each}`, 'Add the key, or correct the group; then send the workers SIGHUP.');
    }
    const rest = policy.uncovered === 'hold' ? 'held' : 'sent';
    const rules = formatCount(policy.rules.length, 'rule');
    if (warnings.length === 0) yield ok(NAME, `${rules} in ${file}; what no cap covers is ${rest}; hash ${hash}`);
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    const detail = error.problems.map(({ message }) => message).join('; ');
    yield problem(NAME, detail, `No worker starts with it. Correct it (\`${CHECK}\` reads it again).`);
  }
}
