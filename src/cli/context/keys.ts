import { type Environment, mayReadOpenSecrets, readConfig } from '../../base/config.js';
import { InvalidConfigError, InvalidInputError } from '../../base/errors.js';
import { audienceOf } from '../../base/audience.js';
import type { ApprovalCheck } from '../../control/approvals/approvable-payout.js';
import type { ReceiptVerdict, ReceiptVerifier } from '../../control/intents/receipt.js';
import { type BoundKeyring, type Keyring, readKeyringFile } from '../../control/keys/keyring.js';
import { openSigner } from '../../control/keys/open-signer.js';
import type { Signer } from '../../control/keys/signer.js';
import type { PayoutProducerOptions } from '../../control/payout-producer.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { Payout } from '../../ledger/payout.js';
import { parseAccountsFile, readPlatformIds } from './accounts.js';
import { readVariable } from './flags.js';

/**
 * Signs payouts of the environment's account; undefined if they are not signed.
 * @throws InvalidConfigError if the signer or its name is missing, or it cannot be opened
 */
export function readPayoutSigner(environment: Environment): Signer | undefined {
  return readSigner('PAYOUT_SIGNER', environment);
}

/** Signs a worker's final states; undefined if they are not signed. */
export function readWorkerSigner(environment: Environment): Signer | undefined {
  return readSigner('PAYOUT_WORKER_SIGNER', environment);
}

function readSigner(variable: 'PAYOUT_SIGNER' | 'PAYOUT_WORKER_SIGNER', environment: Environment) {
  const nameVariable = `${variable}_NAME` as const;
  const { [variable]: from, [nameVariable]: name } = readConfig([variable, nameVariable], environment);
  if (from === undefined && name === undefined) return undefined;
  if (from === undefined) throw invalid(variable, `is required, because ${nameVariable} is set: where that key is`);
  if (name === undefined) {
    throw invalid(nameVariable, `is required, because ${variable} is set: the key's name in the keyring`);
  }
  // Only a program needs it, and other commands need not read it.
  const keyring = from.startsWith('exec:') ? findKeys(environment) : undefined;
  try {
    return openSigner(from, { name, keyring, environment, allowReadableSecrets: mayReadOpenSecrets(environment) });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const fields: Readonly<Record<string, string>> = { signer: variable, name: nameVariable };
    throw new InvalidConfigError(
      error.problems.map(({ field, message }) => ({ field: fields[field] ?? field, message })),
    );
  }
}

/** Both undefined if payouts are not signed. */
export function readSigning(environment: Environment): Pick<PayoutProducerOptions, 'signer' | 'audience'> {
  const signer = readPayoutSigner(environment);
  return { signer, audience: signer && readAudience(environment) };
}

export function requirePayoutSigner(environment: Environment): Signer {
  const signer = readPayoutSigner(environment);
  if (signer !== undefined) return signer;
  throw invalid('PAYOUT_SIGNER', 'is required: where the key is that signs, see `payouts keys generate`');
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
    parseAccountsFile(file).map(({ platformId, audience = common, baseUrl }) => [
      platformId,
      audienceOf({ platformId, audience, baseUrl }),
    ]),
  );
}
