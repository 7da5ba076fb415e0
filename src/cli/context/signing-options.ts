import type { Command } from 'commander';
import { mayReadOpenSecrets, readConfig } from '../../config.js';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { readKeyringFile } from '../../control/keys/keyring-file.js';
import { InvalidInputError, NotVerifiedError } from '../../errors.js';
import { readAudience } from './audience.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './name-flags.js';

/** With which key an operator signs. */
export interface SigningFlags {
  readonly key?: string;
  readonly sshKey?: string;
  readonly keyName?: string;
}

/** The part of a command's help that is about signing. */
export const SIGNING_HELP = `
Where PAYOUT_KEYS_FILE is set, the decision is signed with the key of an operator: --key for a private key, as \`payouts keygen\`
writes it, --ssh-key for the public file of a key in ssh-agent, on a hardware key (ed25519-sk) or beside it. Workers with a
keyring send again, and end a pause that they keep, on nothing else. Without PAYOUT_KEYS_FILE, --key-name says what the workers' keyring calls the key.
Exit code 5: no key was given, or its signature would not count; nothing was changed.
`;

/** Adds `--key`, `--ssh-key` and `--key-name` to a command. @param role - of the key's owner, for the help */
export function addSigningOptions(command: Command, role: 'an operator' | 'an approver' = 'an operator'): Command {
  return command
    .option('--key <file>', `sign with this private key (PEM) of ${role}`)
    .option('--ssh-key <file>', 'sign with the OpenSSH key of this public file, through ssh-agent or a hardware key')
    .option('--key-name <name>', 'what the keyring calls the key (default: found by the key itself)');
}

/**
 * Opens the key with which a decision is signed.
 * @returns undefined where nothing is signed: no keyring, and no key given
 * @throws NotVerifiedError when the keyring asks for a key and none is given, or its signature would not count
 * @throws InvalidInputError when the key cannot be used; InvalidConfigError when the keyring cannot
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
 * Opens the key with which approvals are signed.
 * @returns undefined where no key is given
 * @throws NotVerifiedError when the keyring has not the key, or not as an approver's; InvalidInputError when it cannot be used
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

/** Who signs, as a question or a result says it: `key ann-laptop (Ann)`. */
export function describeSigner({ name, person }: ActSigner): string {
  return person === undefined ? `key ${name}` : `key ${name} (${person})`;
}

/** What a question says behind the decision; empty where nothing is signed. */
export function describeSigning(signer: ActSigner | undefined): string {
  return signer === undefined ? '' : `, signed with ${describeSigner(signer)}`;
}
