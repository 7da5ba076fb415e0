import { type Environment, mayReadOpenSecrets, readConfig } from '../../base/config.js';
import { InvalidConfigError } from '../../base/errors.js';
import { audienceOf } from '../../base/settings.js';
import type { ApprovalCheck } from '../../control/approvals/approvable-payout.js';
import type { ReceiptVerdict, ReceiptVerifier } from '../../control/intents/receipt.js';
import { type BoundKeyring, type Keyring, readKeyringFile } from '../../control/keys/keyring.js';
import { readSigningKey, type SigningKey } from '../../control/keys/signing-key.js';
import type { PayoutProducerOptions } from '../../control/payout-producer.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { Payout } from '../../ledger/payout.js';
import { parseAccountsFile, readPlatformIds } from './accounts.js';
import { readVariable } from './flags.js';

/**
 * Signs payouts of the environment's account; undefined if they are not signed.
 * @throws InvalidConfigError if the file or the name is missing, or the file is not usable
 */
export function readEnvironmentKey(environment: Environment): SigningKey | undefined {
  return readKey('PAYOUT_SIGNING_KEY', environment);
}

/** Signs a worker's final states; undefined if they are not signed. */
export function readWorkerKey(environment: Environment): SigningKey | undefined {
  return readKey('PAYOUT_WORKER_KEY', environment);
}

function readKey(variable: 'PAYOUT_SIGNING_KEY' | 'PAYOUT_WORKER_KEY', environment: Environment) {
  const [fileVariable, nameVariable] = [`${variable}_FILE`, `${variable}_NAME`] as const;
  const { [fileVariable]: file, [nameVariable]: name } = readConfig([fileVariable, nameVariable], environment);
  if (file === undefined && name === undefined) return undefined;
  if (file === undefined) {
    throw invalid(fileVariable, `is required, because ${nameVariable} is set: the file of that key`);
  }
  if (name === undefined) {
    throw invalid(nameVariable, `is required, because ${fileVariable} is set: the key's name in the keyring`);
  }
  try {
    return { name, privateKey: readSigningKey(file, mayReadOpenSecrets(environment)) };
  } catch (error) {
    throw invalid(fileVariable, `${file} ${(error as Error).message}`);
  }
}

/** Both undefined if payouts are not signed. */
export function readSigning(environment: Environment): Pick<PayoutProducerOptions, 'signingKey' | 'audience'> {
  const signingKey = readEnvironmentKey(environment);
  return { signingKey, audience: signingKey && readAudience(environment) };
}

export function requireSigningKey(environment: Environment): SigningKey {
  const key = readEnvironmentKey(environment);
  if (key !== undefined) return key;
  throw invalid('PAYOUT_SIGNING_KEY_FILE', 'is required: the file of the key that signs, see `payouts keys generate`');
}

function invalid(field: string, message: string): InvalidConfigError {
  return new InvalidConfigError([{ field, message }]);
}

export function hasKeyring(environment: Environment): boolean {
  return readVariable('PAYOUT_KEYS_FILE', environment) !== undefined;
}

/** Not bound to an account; undefined if nothing has to be signed. */
export function findKeys(environment: Environment): Keyring | undefined {
  const file = readVariable('PAYOUT_KEYS_FILE', environment);
  return file === undefined ? undefined : readKeyringFile(file, 'PAYOUT_KEYS_FILE');
}

export function requireKeys(environment: Environment): Keyring {
  const keys = findKeys(environment);
  if (keys !== undefined) return keys;
  throw invalid('PAYOUT_KEYS_FILE', 'is required: the keyring, with the public keys that count');
}

/** Bound to the account, so that only signatures of its environment count. */
export function findKeyring(environment: Environment): BoundKeyring | undefined {
  return hasKeyring(environment) ? requireKeyring(environment) : undefined;
}

export function requireKeyring(environment: Environment): BoundKeyring {
  return requireKeys(environment).for(readAudience(environment));
}

export async function requirePolicy(environment: Environment): Promise<LoadedPolicy> {
  // Read first: with several accounts, its error asks for a choice.
  const platformId = readVariable('GATEWAY_PLATFORM_ID', environment);
  const file = readVariable('PAYOUT_POLICY_FILE', environment);
  if (file === undefined) throw invalid('PAYOUT_POLICY_FILE', 'is required: the policy of the account');
  return readPolicy(file, platformId, 'PAYOUT_POLICY_FILE', environment);
}

export async function findPolicy(environment: Environment): Promise<LoadedPolicy | undefined> {
  const isSet = readVariable('PAYOUT_POLICY_FILE', environment) !== undefined;
  return isSet ? requirePolicy(environment) : undefined;
}

/** Reads a policy not yet in use, for any account if the environment names none. */
export async function readPolicyDraft(file: string, environment: Environment): Promise<LoadedPolicy> {
  return readPolicy(file, findAccount(environment), 'file', environment);
}

async function readPolicy(
  file: string,
  platformId: number | undefined,
  field: string,
  environment: Environment,
): Promise<LoadedPolicy> {
  const { readPolicyFile } = await import('../../control/policy/policy-file.js');
  return readPolicyFile(file, { platformId, keyring: findKeys(environment) }, field);
}

function findAccount(environment: Environment): number | undefined {
  try {
    return readVariable('GATEWAY_PLATFORM_ID', environment);
  } catch (error) {
    if (error instanceof InvalidConfigError) return undefined;
    throw error;
  }
}

/** Whether each approval of a payout counts. */
export type CheckApprovals = (payout: Payout) => readonly ApprovalCheck[];

export async function openApprovalCheck(environment: Environment): Promise<CheckApprovals | undefined> {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  const { verifyApprovals } = await import('../../control/approvals/approvable-payout.js');
  const platformId = readVariable('GATEWAY_PLATFORM_ID', environment);
  return (payout) => verifyApprovals(payout, { platformId, keyring, now: Date.now() });
}

export async function openReceiptVerifier(environment: Environment): Promise<ReceiptVerifier | undefined> {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  const { ReceiptVerifier } = await import('../../control/intents/receipt.js');
  return new ReceiptVerifier(readVariable('GATEWAY_PLATFORM_ID', environment), keyring);
}

export function describeReceipt(verdict: ReceiptVerdict | undefined): string | undefined {
  if (verdict === undefined) return undefined;
  return verdict.kind === 'verified' ? `verified by worker ${verdict.signer.name}` : `NOT VERIFIED: ${verdict.message}`;
}

/** The environment that the account signs for. */
export function readAudience(environment: Environment): string {
  const { GATEWAY_PLATFORM_ID: platformId, PAYOUT_AUDIENCE: audience } = readConfig(
    ['GATEWAY_PLATFORM_ID', 'PAYOUT_AUDIENCE'],
    environment,
  );
  const hasUrl = audience === undefined && Boolean(environment['GATEWAY_BASE_URL']);
  return audienceOf({
    ...{ platformId, audience },
    baseUrl: hasUrl ? readVariable('GATEWAY_BASE_URL', environment) : undefined,
  });
}

/** The environment that each account signs for. */
export function readAudiences(environment: Environment): ReadonlyMap<number, string> {
  const file = readVariable('PAYOUT_ACCOUNTS_FILE', environment);
  if (file === undefined) return new Map(readPlatformIds(environment).map((id) => [id, readAudience(environment)]));
  const common = readVariable('PAYOUT_AUDIENCE', environment);
  return new Map(
    parseAccountsFile(file).map((account) => [account.platformId, audienceOf({ audience: common, ...account })]),
  );
}
