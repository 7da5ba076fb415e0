import type { Command } from 'commander';
import { mayReadOpenSecrets } from '../../base/config.js';
import { InvalidInputError, NotVerifiedError } from '../../base/errors.js';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import type { CliContext } from './cli-context.js';
import { nameFlags, readVariable } from './flags.js';

export interface SigningFlags {
  readonly key?: string;
  readonly sshKey?: string;
  readonly keyName?: string;
}

export const SIGNING_HELP =
  'With PAYOUT_KEYS_FILE an operator signs this: --key or --ssh-key (docs/control.md). Without a key it ends with exit code 5.';

export function addSigningOptions(command: Command, role: 'an operator' | 'an approver' = 'an operator'): Command {
  return command
    .option('--key <file>', `sign with this private key (PEM) of ${role}`)
    .option('--ssh-key <file>', 'sign with the OpenSSH key of this public file, through ssh-agent or a hardware key')
    .option('--key-name <name>', 'what the keyring calls the key (default: found by the key itself)');
}

const GIVE_KEY =
  'give --key FILE (a private key) or --ssh-key FILE.pub (ssh-agent, a hardware key). Nothing was changed';

/**
 * @returns undefined if there is neither a keyring nor a key
 * @throws NotVerifiedError if the keyring requires a key and none is given, or its signature would not count
 */
export async function openSigner(context: CliContext, flags: SigningFlags): Promise<ActSigner | undefined> {
  const { environment } = context;
  const keysFile = readVariable('PAYOUT_KEYS_FILE', environment);
  if (flags.key === undefined && flags.sshKey === undefined) {
    if (flags.keyName !== undefined) {
      const message = 'belongs to --key or --ssh-key, which is missing';
      throw new InvalidInputError([{ field: '--key-name', message }]);
    }
    if (keysFile === undefined) return undefined;
    throw new NotVerifiedError(`PAYOUT_KEYS_FILE is set, so decisions are signed by an operator: ${GIVE_KEY}`);
  }
  const [{ findKeys, readAudience }, { openActSigner }] = await Promise.all([import('./keys.js'), importSigners()]);
  const options = toKeyOptions(context, flags);
  const [keyring, audience] = [findKeys(environment), readAudience(environment)];
  return nameFlags(() => openActSigner({ ...options, keyring, audience }));
}

/**
 * @returns undefined without a key
 * @throws NotVerifiedError if the keyring does not have it as an approver's key
 */
export async function openApprover(
  context: CliContext,
  flags: SigningFlags,
  keyring: BoundKeyring,
): Promise<ActSigner | undefined> {
  if (flags.key === undefined && flags.sshKey === undefined) return undefined;
  const { openApprovalSigner } = await importSigners();
  const options = toKeyOptions(context, flags);
  return nameFlags(() => openApprovalSigner({ ...options, keyring, audience: keyring.audience }));
}

export function needsApprover(): NotVerifiedError {
  return new NotVerifiedError(`An approval is signed by an approver: ${GIVE_KEY}`);
}

/** Most commands sign nothing. */
const importSigners = async () => import('../../control/keys/open-act-signer.js');

function toKeyOptions({ environment, writeError }: CliContext, { key, sshKey, keyName }: SigningFlags) {
  return {
    ...{ keyFile: key, sshKeyFile: sshKey, keyName, environment, onMessage: writeError },
    allowReadableSecrets: mayReadOpenSecrets(environment),
  };
}

/** `key ann-laptop (Ann)` */
export function describeSigner({ name, person }: ActSigner): string {
  return person === undefined ? `key ${name}` : `key ${name} (${person})`;
}

export function describeSigning(signer: ActSigner | undefined): string {
  return signer === undefined ? '' : `, signed with ${describeSigner(signer)}`;
}
