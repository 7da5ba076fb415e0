import type { Command } from 'commander';
import { mayReadOpenSecrets } from '../../base/config.js';
import { InvalidInputError, NotVerifiedError } from '../../base/errors.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import type { OpenedSigner, SignerOptions } from '../../control/keys/open-signer.js';
import type { CliContext } from './cli-context.js';
import { readVariable } from './flags.js';

export interface SigningFlags {
  readonly key?: string;
  readonly keyName?: string;
}

/** Who signs an operator's decisions. */
export interface Decider {
  readonly signer: OpenedSigner;
  readonly audience: string;
}

export const SIGNING_HELP =
  'With PAYOUT_KEYS_FILE an operator signs this: --key (docs/control.md#signers). Without a key it ends with exit code 5.';

export function addSigningOptions(command: Command, role: 'an operator' | 'an approver' = 'an operator'): Command {
  return command
    .option(
      '--key <signer>',
      `sign with this key of ${role}: a file (PEM), agent:SHA256:…, exec:PROGRAM, or ssh:FILE.pub for a hardware key`,
    )
    .option('--key-name <name>', 'what the keyring calls the key (default: found by the key itself)');
}

const GIVE_KEY =
  'give --key FILE (a private key), agent:SHA256:… or ssh:FILE.pub (a hardware key). Nothing was changed';

/**
 * @returns undefined if there is neither a keyring nor a key
 * @throws NotVerifiedError if the keyring requires a key and none is given, or its signature would not count
 */
export async function openDecider(context: CliContext, flags: SigningFlags): Promise<Decider | undefined> {
  const { environment } = context;
  const keysFile = readVariable('PAYOUT_KEYS_FILE', environment);
  const { key, keyName } = flags;
  if (key === undefined) {
    if (keyName !== undefined) {
      throw new InvalidInputError([{ field: '--key-name', message: 'belongs to --key, which is missing' }]);
    }
    if (keysFile === undefined) return undefined;
    throw new NotVerifiedError(`PAYOUT_KEYS_FILE is set, so decisions are signed by an operator: ${GIVE_KEY}`);
  }
  const { findKeys, readAudience } = await import('./keys.js');
  const [keyring, audience] = [findKeys(environment), readAudience(environment)];
  return { signer: await open(context, key, { name: keyName, keyring, role: 'operator' }), audience };
}

/**
 * @returns undefined without a key
 * @throws NotVerifiedError if the keyring does not have it as an approver's key
 */
export async function openApprover(
  context: CliContext,
  { key, keyName: name }: SigningFlags,
  keyring: BoundKeyring,
): Promise<OpenedSigner | undefined> {
  return key === undefined ? undefined : open(context, key, { name, keyring, role: 'approver' });
}

export function needsApprover(): NotVerifiedError {
  return new NotVerifiedError(`An approval is signed by an approver: ${GIVE_KEY}`);
}

const FLAGS: Readonly<Record<string, string>> = { signer: '--key', name: '--key-name' };

async function open(
  { environment, writeError }: CliContext,
  key: string,
  options: Pick<SignerOptions, 'name' | 'keyring' | 'role'>,
): Promise<OpenedSigner> {
  // Most commands sign nothing.
  const { openSigner } = await import('../../control/keys/open-signer.js');
  const allowReadableSecrets = mayReadOpenSecrets(environment);
  try {
    return openSigner(key, { ...options, environment, onMessage: writeError, allowReadableSecrets });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(
      error.problems.map(({ field, message }) => ({ field: FLAGS[field] ?? field, message })),
    );
  }
}

/** `key ann-laptop (Ann)` */
export function describeDecider({ signer: { name, person } }: Decider): string {
  return person === undefined ? `key ${name}` : `key ${name} (${person})`;
}

export function describeSigning(decider: Decider | undefined): string {
  return decider === undefined ? '' : `, signed with ${describeDecider(decider)}`;
}
