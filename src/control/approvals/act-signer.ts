import { InvalidInputError, NotVerifiedError } from '../../errors.js';
import { StatementError } from '../intents/statement.js';
import type { Keyring, KeyringKey } from '../keys/keyring.js';
import { isSameKey, type SshKey } from '../keys/ssh-key.js';
import { serializeAct, formatAct, type Act } from './act.js';
import { ACT_LIFETIME_MS } from './verify-act.js';

/** A key of an operator or an approver: its name in the keyring, and a way to sign with it, such as a file, an agent or a hardware key. */
export interface ActSigner {
  /** The name of the key in the keyring. */
  readonly name: string;
  /** The environment whose workers are to act on it: from the configuration, never from Redis. */
  readonly audience: string;
  /** The person that the keyring names for the key, where it was looked up. */
  readonly person?: string | undefined;
  /** A person may have to act for each signature: what was signed is then stored one by one. */
  readonly isInteractive?: boolean;
  /** @returns the signature of the text as UTF-8: base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign` */
  readonly sign: (text: string) => Promise<string>;
}

/** What an act states, without who signs it and when. */
export type ActContent = Omit<Act, 'audience' | 'by' | 'at' | 'expiresAt'>;

/**
 * Signs a decision of an operator.
 * @param now - wall clock, ms: the act holds for {@link ACT_LIFETIME_MS} from then on
 * @returns the signed act as it is stored
 * @throws InvalidInputError when a text of it cannot stand on one line; what the signer throws
 */
export async function signAct(
  signer: ActSigner,
  platformId: number,
  content: ActContent,
  now: number,
): Promise<string> {
  const at = new Date(now).toISOString();
  const expiresAt = new Date(now + ACT_LIFETIME_MS).toISOString();
  const act: Act = { ...content, audience: signer.audience, by: signer.name, at, expiresAt };
  let text: string;
  try {
    text = formatAct(platformId, act);
  } catch (error) {
    if (!(error instanceof StatementError)) throw error;
    throw new InvalidInputError([{ field: error.field, message: error.message.slice(error.field.length + 2) }]);
  }
  return serializeAct({ ...act, signature: await signer.sign(text) });
}

/** What keys of a role sign, where a person decides. */
const SIGNED_BY = { operator: 'An act', approver: 'An approval' } as const;

/** The roles of those who decide about payouts that are there. */
export type DecidingRole = keyof typeof SIGNED_BY;

/**
 * Finds the key of a keyring with which somebody is about to sign, and checks that its signature would count.
 * @param name - the key's name, where the public key alone is not to decide
 * @param now - wall clock, ms
 * @throws NotVerifiedError that says what was found and what is needed
 */
export function findSigningKey(
  keyring: Keyring,
  publicKey: SshKey,
  { role, name, now }: { readonly role: DecidingRole; readonly name?: string | undefined; readonly now: number },
): KeyringKey {
  const found = keyring.keys.find((key) => isSameKey(key.public, publicKey));
  const names = keyring.keys.filter((key) => key.role === role).map((key) => key.name);
  const needed = `${SIGNED_BY[role]} is signed by a key with the role ${role} (${names.join(', ') || 'the keyring has none'})`;
  if (found === undefined)
    throw new NotVerifiedError(
      `The keyring has no such key. ${needed}; add it with \`payouts keygen\`, or give another key`,
    );
  if (name !== undefined && found.name !== name) {
    throw new NotVerifiedError(`The keyring names this key "${found.name}", not "${name}"`);
  }
  if (found.role !== role) throw new NotVerifiedError(`The key "${found.name}" has the role ${found.role}. ${needed}`);
  if (found.revoked) throw new NotVerifiedError(`The key "${found.name}" is revoked. ${needed}; give another one`);
  const { notBefore = -Infinity, notAfter = Infinity } = found;
  if (now < notBefore || now > notAfter) {
    const limit =
      now < notBefore ? `before ${new Date(notBefore).toISOString()}` : `after ${new Date(notAfter).toISOString()}`;
    throw new NotVerifiedError(`The key "${found.name}" does not sign ${limit} (keyring). ${needed}; give another one`);
  }
  return found;
}
