import { InvalidInputError, NotVerifiedError } from '../../base/errors.js';
import { tryFormat } from '../intents/statement.js';
import type { Keyring, KeyringKey } from '../keys/keyring.js';
import { isSameKey, type SshKey } from '../keys/ssh.js';
import { type Act, ACT_LIFETIME_MS, formatAct, serializeAct } from './act.js';

/** A key of an operator or an approver, in a file, an agent or a hardware key. */
export interface ActSigner {
  readonly name: string;
  /** The environment whose workers must accept the signature: from the configuration, never from Redis. */
  readonly audience: string;
  readonly person?: string | undefined;
  /** Each signature may need a person, so signatures are stored one by one. */
  readonly isInteractive?: boolean;
  /** @returns the signature of the text as UTF-8: base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign` */
  readonly sign: (text: string) => Promise<string>;
}

export type ActContent = Omit<Act, 'audience' | 'by' | 'at' | 'expiresAt'>;

/**
 * Signs a decision of an operator.
 * @param now - wall clock, ms: the start of {@link ACT_LIFETIME_MS}
 * @returns the signed act as it is stored
 * @throws InvalidInputError if a text is not one line; errors of the signer
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
  const text = tryFormat(() => formatAct(platformId, act));
  if (typeof text === 'string') return serializeAct({ ...act, signature: await signer.sign(text) });
  const { field, message } = text;
  throw new InvalidInputError([{ field, message: message.slice(field.length + 2) }]);
}

const SIGNED_BY = { operator: 'An act', approver: 'An approval' } as const;

export type DecidingRole = keyof typeof SIGNED_BY;

/**
 * Finds a signer's key in a keyring, and checks that its signature would count.
 * @param name - the key's name, if the public key alone must not decide
 * @param now - wall clock, ms
 * @throws NotVerifiedError with what was found and what is needed
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
      `The keyring has no such key. ${needed}; add it with \`payouts keys generate\`, or give another key`,
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
