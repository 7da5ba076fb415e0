import { z } from 'zod';
import { toProblem } from '../fields.js';
import { InvalidConfigError, type Problem } from '../errors.js';
import { bytesOf, publicKeyOf, verifyText } from './ed25519.js';
import { parseSshKey, SSH_KEY_TYPES, type SshKey } from './ssh-key.js';
import { isSshSignature, verifySshText } from './ssh-signature.js';

/** What a key may sign: payouts, approvals, acts, receipts. */
export const KEY_ROLES = ['producer', 'approver', 'operator', 'worker'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** A name of a key, which records and statements carry. */
export const keyNameField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'must be 1 to 32 of A-Z a-z 0-9 . _ - and begin with a letter or digit');

/** A person in a keyring, and whom a producer names as requesting. */
export const personField = z
  .string({ error: 'must be a string' })
  .regex(/^[^\p{Cc}\u2028\u2029]{1,64}$/u, 'must be 1 to 64 characters on one line')
  .refine((text) => text.trim() === text && text !== '', 'must not begin or end with spaces');

/** The first word of a key that is given as its 32 bytes in base64. */
const RAW_KEY = /^ed25519:([A-Za-z0-9+/_-]{43})=?$/;
const PUBLIC_RULE =
  'must be "ed25519:" and 43 characters of base64, or a public key of OpenSSH (ssh-ed25519 …, sk-ssh-ed25519@openssh.com …)';

const publicField = z.string({ error: PUBLIC_RULE }).transform((text, context): SshKey => {
  try {
    return parsePublicKey(text);
  } catch {
    context.issues.push({ code: 'custom', message: PUBLIC_RULE, input: text });
    return z.NEVER;
  }
});

/**
 * Reads a public key in one of the forms of a keyring.
 * @throws RangeError when it is none
 */
export function parsePublicKey(text: string): SshKey {
  const raw = RAW_KEY.exec(text)?.[1];
  if (raw !== undefined) return { type: 'ssh-ed25519', key: publicKeyOf(Buffer.from(raw, 'base64')) };
  const [type = '', bytes = ''] = text.split(' ');
  const key = parseSshKey(Buffer.from(bytes, 'base64'));
  if (key.type !== type) throw new RangeError(`is not of type ${type}`);
  return key;
}

const timeField = z.iso.datetime({ offset: true, error: 'must be a time such as 2030-01-31T09:00:00Z' });

const keyEntry = z.strictObject({
  name: keyNameField,
  role: z.enum(KEY_ROLES, { error: `must be one of ${KEY_ROLES.join(', ')}` }),
  person: personField,
  public: publicField,
  notBefore: timeField.transform((text) => Date.parse(text)).optional(),
  notAfter: timeField.transform((text) => Date.parse(text)).optional(),
  /** A key that was stolen: nothing that it signed counts, whenever it was signed. */
  revoked: z.union([z.boolean(), timeField.transform(() => true)], 'must be true, false or a time').default(false),
});

const keyringFile = z.strictObject({
  version: z.literal(1, { error: 'must be 1' }),
  keys: z.array(keyEntry, { error: 'must be a list of keys' }),
});

/** One public key of a keyring, and who may do what with it, and when (wall clock, ms). */
export type KeyringKey = z.output<typeof keyEntry>;

export { SSH_KEY_TYPES };

/** The public keys of those whose signatures count. */
export class Keyring {
  readonly #keys: ReadonlyMap<string, KeyringKey>;

  private constructor(keys: readonly KeyringKey[]) {
    this.#keys = new Map(keys.map((key) => [key.name, key]));
  }

  /**
   * Reads what stands in a keyring file.
   * @param content - the value that the YAML or JSON stands for
   * @throws InvalidConfigError naming every problem, such as `keys.2.public`
   */
  static parse(content: unknown): Keyring {
    const parsed = keyringFile.safeParse(content, { reportInput: true });
    if (!parsed.success) throw new InvalidConfigError(parsed.error.issues.map(toProblem));
    const problems = findDuplicates(parsed.data.keys);
    if (problems.length > 0) throw new InvalidConfigError(problems);
    return new Keyring(parsed.data.keys);
  }

  get keys(): readonly KeyringKey[] {
    return [...this.#keys.values()];
  }

  find(name: string): KeyringKey | undefined {
    return this.#keys.get(name);
  }
}

function findDuplicates(keys: readonly KeyringKey[]): Problem[] {
  const names = new Map<string, number>();
  const publics = new Map<string, number>();
  return keys.flatMap((key, index) => {
    const bytes = bytesOf(key.public.key).toString('hex');
    const [sameName, samePublic] = [names.get(key.name), publics.get(bytes)];
    names.set(key.name, index);
    publics.set(bytes, index);
    return [
      ...(sameName === undefined
        ? []
        : [{ field: `keys.${index}.name`, message: `is also the name of keys.${sameName} (got "${key.name}")` }]),
      ...(samePublic === undefined
        ? []
        : [
            {
              field: `keys.${index}.public`,
              message: `is also the key of keys.${samePublic}: one key, one person and one role`,
            },
          ]),
    ];
  });
}

/** Whether a signature, base64url or armoured by OpenSSH, is this key's over this text. */
export function isSignedBy({ public: publicKey }: KeyringKey, text: string, signature: string): boolean {
  if (isSshSignature(signature)) return verifySshText(text, signature, publicKey);
  return publicKey.type === 'ssh-ed25519' && verifyText(text, signature, publicKey.key);
}
