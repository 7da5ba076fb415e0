import { audienceOf } from '../../base/settings.js';
import type { PayoutProducerOptions } from '../../control/payout-producer.js';
import type { Command } from 'commander';
import { type Environment, mayReadOpenSecrets, readConfig } from '../../base/config.js';
import { systemClock } from '../../base/clock.js';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import { openAudience, type Audience } from '../../control/keys/audience.js';
import { type BoundKeyring, type Keyring, readKeyringFile } from '../../control/keys/keyring.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import { readSigningKey, type SigningKey } from '../../control/keys/signing-key.js';
import type { ReceiptVerdict, ReceiptVerifier } from '../../control/intents/receipt.js';
import { InvalidConfigError, InvalidInputError, NotVerifiedError } from '../../base/errors.js';
import type { Payout } from '../../ledger/payout.js';
import type { CheckedApproval } from '../../control/approvals/approvable-payout.js';
import { parseAccountsFile, readPlatformIds } from './accounts.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './flags.js';

export interface SigningFlags {
  readonly key?: string;
  readonly sshKey?: string;
  readonly keyName?: string;
}

export const SIGNING_HELP = `
Where PAYOUT_KEYS_FILE is set, the decision is signed with the key of an operator: --key for a private key, as \`payouts keys generate\`
writes it, --ssh-key for the public file of a key in ssh-agent, on a hardware key (ed25519-sk) or beside it. Workers with a
keyring send again, and end a pause that they keep, on nothing else. Without PAYOUT_KEYS_FILE, --key-name says what the workers' keyring calls the key.
Exit code 5: no key was given, or its signature would not count; nothing was changed.
`;

export function addSigningOptions(command: Command, role: 'an operator' | 'an approver' = 'an operator'): Command {
  return command
    .option('--key <file>', `sign with this private key (PEM) of ${role}`)
    .option('--ssh-key <file>', 'sign with the OpenSSH key of this public file, through ssh-agent or a hardware key')
    .option('--key-name <name>', 'what the keyring calls the key (default: found by the key itself)');
}

/**
 * @returns undefined if there is neither a keyring nor a key
 * @throws NotVerifiedError if the keyring requires a key and none is given, or its signature would not count
 */
export async function openSigner(
  { environment, writeError }: CliContext,
  { key, sshKey, keyName }: SigningFlags,
): Promise<ActSigner | undefined> {
  const { PAYOUT_KEYS_FILE: keysFile } = readConfig(['PAYOUT_KEYS_FILE'], environment);
  if (key === undefined && sshKey === undefined) {
    if (keyName !== undefined) {
      throw new InvalidInputError([
        { field: '--key-name', message: 'belongs to --key or --ssh-key, which is missing' },
      ]);
    }
    if (keysFile === undefined) return undefined;
    throw new NotVerifiedError(
      'PAYOUT_KEYS_FILE is set, so decisions are signed by an operator: give --key FILE (a private key) or --ssh-key FILE.pub (ssh-agent, a hardware key). Nothing was changed',
    );
  }
  const keyring = keysFile === undefined ? undefined : readKeyringFile(keysFile, 'PAYOUT_KEYS_FILE');
  const audience = readAudience(environment);
  // Most commands sign nothing.
  const { openActSigner } = await import('../../control/keys/open-act-signer.js');
  return nameFlags(() =>
    openActSigner({
      ...{ keyFile: key, sshKeyFile: sshKey, keyring, keyName, audience, environment, onMessage: writeError },
      allowReadableSecrets: mayReadOpenSecrets(environment),
    }),
  );
}

/**
 * @returns undefined without a key
 * @throws NotVerifiedError if the keyring does not have it as an approver's key
 */
export async function openApprover(
  { environment, writeError }: CliContext,
  { key, sshKey, keyName }: SigningFlags,
  keyring: BoundKeyring,
): Promise<ActSigner | undefined> {
  if (key === undefined && sshKey === undefined) return undefined;
  const { audience } = keyring;
  const { openApprovalSigner } = await import('../../control/keys/open-act-signer.js');
  return nameFlags(() =>
    openApprovalSigner({
      ...{ keyFile: key, sshKeyFile: sshKey, keyring, keyName, audience, environment, onMessage: writeError },
      allowReadableSecrets: mayReadOpenSecrets(environment),
    }),
  );
}

/** `key ann-laptop (Ann)` */
export function describeSigner({ name, person }: ActSigner): string {
  return person === undefined ? `key ${name}` : `key ${name} (${person})`;
}

export function describeSigning(signer: ActSigner | undefined): string {
  return signer === undefined ? '' : `, signed with ${describeSigner(signer)}`;
}

const SIGNING_FILE = 'PAYOUT_SIGNING_KEY_FILE';
const WORKER_FILE = 'PAYOUT_WORKER_KEY_FILE';

/**
 * Signs payouts of the environment's account; undefined if they are not signed.
 * @throws InvalidConfigError if the file or the name is missing, or the file is not usable
 */
export function readEnvironmentKey(environment: Environment): SigningKey | undefined {
  const config = readConfig([SIGNING_FILE, 'PAYOUT_SIGNING_KEY_NAME'], environment);
  return readKey(
    environment,
    [SIGNING_FILE, config[SIGNING_FILE]],
    ['PAYOUT_SIGNING_KEY_NAME', config.PAYOUT_SIGNING_KEY_NAME],
  );
}

/** Signs a worker's final states; undefined if they are not signed. */
export function readWorkerKey(environment: Environment): SigningKey | undefined {
  const config = readConfig([WORKER_FILE, 'PAYOUT_WORKER_KEY_NAME'], environment);
  return readKey(
    environment,
    [WORKER_FILE, config[WORKER_FILE]],
    ['PAYOUT_WORKER_KEY_NAME', config.PAYOUT_WORKER_KEY_NAME],
  );
}

type Given = readonly [variable: string, value: string | undefined];

function readKey(
  environment: Environment,
  [fileVariable, file]: Given,
  [nameVariable, name]: Given,
): SigningKey | undefined {
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
  if (key === undefined)
    throw invalid(SIGNING_FILE, 'is required: the file of the key that signs, see `payouts keys generate`');
  return key;
}

function invalid(field: string, message: string): InvalidConfigError {
  return new InvalidConfigError([{ field, message }]);
}

const KEYS_FILE = 'PAYOUT_KEYS_FILE';

export function hasKeyring(environment: Environment): boolean {
  return readConfig([KEYS_FILE], environment)[KEYS_FILE] !== undefined;
}

export function findKeyring(environment: Environment): BoundKeyring | undefined {
  return hasKeyring(environment) ? requireKeyring(environment) : undefined;
}

export function requireKeyring(environment: Environment): BoundKeyring {
  return requireKeys(environment).for(readOpenAudience(environment));
}

/** Not bound to an account. */
export function requireKeys(environment: Environment): Keyring {
  const { [KEYS_FILE]: path } = readConfig([KEYS_FILE], environment);
  if (path !== undefined) return readKeyringFile(path, KEYS_FILE);
  throw new InvalidConfigError([
    { field: KEYS_FILE, message: 'is required: the keyring, with the public keys that count' },
  ]);
}

const POLICY_FILE = 'PAYOUT_POLICY_FILE';

interface PolicyAndKeys {
  readonly loaded: LoadedPolicy;
  /** Undefined if nothing has to be signed. */
  readonly keyring: Keyring | undefined;
}

export async function requirePolicy(environment: Environment): Promise<PolicyAndKeys> {
  // Read first: with several accounts, its error asks for a choice.
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  const { [POLICY_FILE]: file } = readConfig([POLICY_FILE], environment);
  if (file === undefined) {
    throw new InvalidConfigError([{ field: POLICY_FILE, message: 'is required: the policy of the account' }]);
  }
  return readPolicy(file, platformId, POLICY_FILE, environment);
}

export async function findPolicy(environment: Environment): Promise<LoadedPolicy | undefined> {
  if (readConfig([POLICY_FILE], environment)[POLICY_FILE] === undefined) return undefined;
  return (await requirePolicy(environment)).loaded;
}

/** Reads a policy not yet in use, for any account if the environment names none. */
export async function readPolicyDraft(file: string, environment: Environment): Promise<PolicyAndKeys> {
  return readPolicy(file, findAccount(environment), 'file', environment);
}

async function readPolicy(
  file: string,
  platformId: number | undefined,
  field: string,
  environment: Environment,
): Promise<PolicyAndKeys> {
  const { readPolicyFile } = await import('../../control/policy/policy-file.js');
  const { [KEYS_FILE]: keysFile } = readConfig([KEYS_FILE], environment);
  const keyring = keysFile === undefined ? undefined : readKeyringFile(keysFile, KEYS_FILE);
  return { loaded: readPolicyFile(file, { platformId, keyring }, field), keyring };
}

function findAccount(environment: Environment): number | undefined {
  try {
    return readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID;
  } catch (error) {
    if (error instanceof InvalidConfigError) return undefined;
    throw error;
  }
}

/** Whether each approval of a payout counts. */
export type ApprovalJudge = (payout: Payout) => readonly CheckedApproval[];

/** Undefined without a keyring. */
export async function openApprovalJudge(environment: Environment): Promise<ApprovalJudge | undefined> {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  const { verifyApprovals } = await import('../../control/approvals/approvable-payout.js');
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  return (payout) => verifyApprovals(payout, { platformId, keyring, now: Date.now() });
}

/** Undefined without a keyring. */
export async function openReceiptVerifier(environment: Environment): Promise<ReceiptVerifier | undefined> {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  const { ReceiptVerifier } = await import('../../control/intents/receipt.js');
  return new ReceiptVerifier(readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID, keyring);
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
  const baseUrl = hasUrl ? readConfig(['GATEWAY_BASE_URL'], environment).GATEWAY_BASE_URL : undefined;
  return audienceOf({ platformId, audience, baseUrl });
}

/** The environment whose signatures count. */
function readOpenAudience(environment: Environment): Audience {
  const { PAYOUT_ACCEPT_UNBOUND_UNTIL: until } = readConfig(['PAYOUT_ACCEPT_UNBOUND_UNTIL'], environment);
  return openAudience(readAudience(environment), until, systemClock);
}

/** The environment that each account signs for. */
export function readAudiences(environment: Environment): ReadonlyMap<number, string> {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return new Map(readPlatformIds(environment).map((id) => [id, readAudience(environment)]));
  const { PAYOUT_AUDIENCE: common } = readConfig(['PAYOUT_AUDIENCE'], environment);
  return new Map(
    parseAccountsFile(file).map((account) => [account.platformId, audienceOf({ audience: common, ...account })]),
  );
}
