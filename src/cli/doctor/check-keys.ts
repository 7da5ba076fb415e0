import { type Keyring, type KeyRole, readKeyringFile } from '../../control/keys/keyring.js';
import { readPolicyFile } from '../../control/policy/policy-file.js';
import { OtherKeyError, type Signer, trySigner } from '../../control/keys/signer.js';
import type { Environment } from '../../base/config.js';
import { InvalidConfigError, SignerError } from '../../base/errors.js';
import { formatCount } from '../../base/format.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { findKeyProblem, otherKey } from '../../control/keys/check-receipt-signer.js';
import { describeOtherGateway } from '../../worker/sender/journal-audit.js';
import { readPayoutSigner, readWorkerSigner } from '../context/keys.js';
import { toKeyViews, type KeyView } from '../keys/describe-keys.js';
import { ok, problem, warning, type Finding } from './check-result.js';

const FILE = 'PAYOUT_KEYS_FILE';
const KEYGEN = 'payouts keys generate NAME --person PERSON --out FILE --role';

/**
 * Whether payouts must be signed, and the keyring is usable now and for the next weeks.
 * @param file - of the keyring; undefined if nothing has to be signed
 * @param now - wall clock, ms
 */
export function checkKeys(
  file: string | undefined,
  now: number,
): { readonly keyring: Keyring | undefined; readonly findings: readonly Finding[] } {
  if (file === undefined) {
    const detail = `${FILE} is not set: anyone who can write to Redis can pay himself`;
    const fix = `To have only signed payouts sent, follow docs/control.md: it begins with \`${KEYGEN} producer\`.`;
    return { keyring: undefined, findings: [warning(detail, fix)] };
  }
  let keyring: Keyring;
  try {
    keyring = readKeyringFile(file, FILE);
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    const detail = error.problems.map(({ message }) => message).join('; ');
    const fix = `No worker starts with it. Correct it (\`payouts keys check\` reads it again); \`${KEYGEN} producer\` prints an entry.`;
    return { keyring: undefined, findings: [problem(detail, fix)] };
  }
  const findings = [...checkEntries(keyring, file, now)];
  const count = formatCount(keyring.keys.length, 'key');
  return {
    keyring,
    findings: findings.length > 0 ? findings : [ok(`only signed payouts are sent; ${count} in ${file}`)],
  };
}

function* checkEntries(keyring: Keyring, file: string, now: number): Generator<Finding> {
  const views = toKeyViews(keyring, now);
  if (!views.some((key) => key.role === 'producer' && isValid(key))) {
    const detail = `${file} has no key of a producer that is valid now: every payout is held`;
    yield problem(detail, describeNext('producer', "the producer's host"));
  }
  if (!views.some((key) => key.role === 'operator' && isValid(key))) {
    const detail = `${file} has no key of an operator that is valid now: nobody can retry, resolve as not sent, or resume`;
    yield warning(detail, describeNext('operator', "the operator's machine"));
  }
  for (const key of views) yield* checkEnd(key, views);
}

function describeNext(role: KeyRole, where: string): string {
  return `Run \`${KEYGEN} ${role}\` on ${where}, add the entry that it prints, then send the workers SIGHUP, or restart them.`;
}

/** An expired key stays for its earlier signatures, but needs a successor. */
function* checkEnd(key: KeyView, views: readonly KeyView[]): Generator<Finding> {
  const { name, role, person, status, notAfter = '' } = key;
  const hasSuccessor = views.some((other) => other.role === role && other.person === person && isValid(other));
  if (status === 'expires soon') {
    const fix = `Unless another key takes its place, run \`${KEYGEN} ${role}\` and add the entry before.`;
    yield warning(`the key "${name}" (${role}) ends at ${notAfter}`, fix);
  }
  if (status === 'expired' && !hasSuccessor) {
    const fix = `If ${person} must still sign, run \`${KEYGEN} ${role}\` and add the entry.`;
    yield warning(`the key "${name}" (${role}) ended at ${notAfter}, and ${person} has no other`, fix);
  }
}

function isValid({ status }: KeyView): boolean {
  return status === 'valid' || status === 'expires soon';
}

/** Whether each signer of this host signs, with the key that the keyring has. @param keyring - undefined: not compared */
export async function checkSigners(environment: Environment, keyring: Keyring | undefined): Promise<Finding[]> {
  const found = await Promise.all([
    checkSigner('PAYOUT_SIGNER', () => readPayoutSigner(environment), keyring),
    checkSigner('PAYOUT_WORKER_SIGNER', () => readWorkerSigner(environment), keyring),
  ]);
  return found.filter((finding) => finding !== undefined);
}

const SIGNERS = {
  PAYOUT_SIGNER: { role: 'producer', without: 'No payout can be enqueued here' },
  PAYOUT_WORKER_SIGNER: { role: 'worker', without: 'No worker starts with a wrong key, and receipts are missing' },
} as const;

async function checkSigner(
  variable: keyof typeof SIGNERS,
  read: () => Signer | undefined,
  keyring: Keyring | undefined,
): Promise<Finding | undefined> {
  const { role, without } = SIGNERS[variable];
  const fix = `${without}. Start the agent or program, or correct ${variable} (docs/control.md#signers). \`${KEYGEN} ${role}\` makes a key, and prints the entry for the keyring; ${variable}_NAME is its name there.`;
  try {
    const signer = read();
    if (signer === undefined) return undefined;
    const wrong = keyring && findKeyProblem(signer.name, role, keyring);
    if (wrong !== undefined) return problem(`${variable}_NAME ${wrong}`, fix);
    await trySigner(signer, keyring?.find(signer.name));
    return ok(`${variable} signs, with the key "${signer.name}"`);
  } catch (error) {
    if (error instanceof OtherKeyError) return problem(`${variable}_NAME ${otherKey(variable)}`, fix);
    if (error instanceof SignerError) return problem(`${variable}: ${error.message}`, fix);
    if (!(error instanceof InvalidConfigError)) throw error;
    return problem(error.problems.map(({ field, message }) => `${field} ${message}`).join('; '), fix);
  }
}

export function* checkPolicy(
  file: string,
  platformId: number,
  keyring: Keyring | undefined,
  now: number,
): Generator<Finding> {
  try {
    const { policy, hash, warnings } = readPolicyFile(file, { platformId, keyring }, undefined, now);
    for (const each of warnings) {
      yield warning(`${file}: ${each}`, 'Add the key, or correct the group; then send the workers SIGHUP.');
    }
    const rest = policy.uncovered === 'hold' ? 'held' : 'sent';
    const rules = formatCount(policy.rules.length, 'rule');
    if (warnings.length === 0) yield ok(`${rules} in ${file}; what no cap covers is ${rest}; hash ${hash}`);
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    const detail = error.problems.map(({ message }) => message).join('; ');
    yield problem(detail, 'No worker starts with it. Correct it (`payouts policy check` reads it again).');
  }
}

/**
 * Whose signatures the worker accepts, and whether the ledger belongs to its gateway.
 * @param ledger - undefined if Redis is unavailable
 */
export async function checkAudience(ledger: PayoutLedger | undefined, audience: string): Promise<Finding> {
  if (ledger === undefined) return ok(`"${audience}"`);
  const bound = await ledger.readAudience();
  if (bound === undefined) return ok(`"${audience}"; the first send binds the ledger to it`);
  if (bound === audience) return ok(`"${audience}"; the ledger is bound to it`);
  return problem(describeOtherGateway(bound, audience), 'See docs/runbooks/other-gateway.md.');
}
