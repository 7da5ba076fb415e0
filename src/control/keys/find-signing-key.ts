import { InvalidConfigError, NotVerifiedError } from '../../base/errors.js';
import { keyNameField } from '../../base/fields.js';
import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import type { Keyring, KeyringKey, KeyRole } from './keyring.js';
import type { Signer } from './signer.js';
import { isSameKey, type SshKey } from './ssh.js';

/** @throws InvalidConfigError if a signer of the application has no usable name, which is not shown: it may be the key */
export function requireKeyName({ name }: Pick<Signer, 'name'>, option: string): void {
  const parsed = keyNameField.safeParse(name);
  if (parsed.success) return;
  const message = parsed.error.issues[0]?.message ?? 'is not valid';
  throw new InvalidConfigError([{ field: `${option}.name`, message }]);
}

const SIGNED = {
  producer: 'A payout',
  operator: 'An act',
  approver: 'An approval',
  worker: 'A receipt',
} as const satisfies Record<KeyRole, string>;

/**
 * Finds a signer's key in a keyring, and checks that its signature would count.
 * @param publicKey - undefined if the keyring was asked for it, and has none
 * @param name - the key's name, if the public key alone must not decide
 * @param now - wall clock, ms
 * @throws NotVerifiedError with what was found and what is needed
 */
export function findSigningKey(
  keyring: Keyring,
  publicKey: SshKey | undefined,
  { role, name, now }: { readonly role: KeyRole; readonly name?: string | undefined; readonly now: number },
): KeyringKey {
  const found = publicKey && keyring.keys.find((key) => isSameKey(key.public, publicKey));
  const names = keyring.keys.filter((key) => key.role === role).map((key) => key.name);
  const needed = `${SIGNED[role]} is signed by a key with the role ${role} (${names.join(', ') || 'the keyring has none'})`;
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
      now < notBefore ? `before ${formatTimeUtc(toIsoTime(notBefore))}` : `after ${formatTimeUtc(toIsoTime(notAfter))}`;
    throw new NotVerifiedError(`The key "${found.name}" does not sign ${limit} (keyring). ${needed}; give another one`);
  }
  return found;
}
