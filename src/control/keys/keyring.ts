import { z } from 'zod';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import { keyNameField, personField, toProblem } from '../../base/fields.js';
import { loadYaml } from '../../base/late-yaml.cjs';
import type { Audience } from './audience.js';
import { readNamedBy, readPublicBytes } from './current-file.js';
import { bytesOf, publicKeyOf, verifyText } from './ed25519.js';
import { findLookAlikes, personIdField } from './person.js';
import { isSshSignature, parseSshKey, SSH_KEY_TYPES, type SshKey, verifySshText } from './ssh.js';

export const KEY_ROLES = ['producer', 'approver', 'operator', 'worker'] as const;
/** What a key may sign: payouts, approvals, acts, receipts. */
export type KeyRole = (typeof KEY_ROLES)[number];

const RAW_KEY = /^ed25519:([A-Za-z0-9+/_-]{43})=?$/;
const KEY_TYPE = /^(ed25519:|(ssh|ecdsa|sk)-[a-z0-9@.-]{1,40}(?= ))/;
const PUBLIC_RULE =
  'must be "ed25519:" and 43 characters of base64, or a public key of OpenSSH (ssh-ed25519 …, sk-ssh-ed25519@openssh.com …)';

const publicField = z.string({ error: PUBLIC_RULE }).transform((text, context): SshKey => {
  try {
    return parsePublicKey(text);
  } catch (error) {
    const message = `${(error as RangeError).message}: it ${PUBLIC_RULE}`;
    // Text that is no public key may be a private one, so no message shows it.
    context.issues.push({ code: 'custom', message, input: KEY_TYPE.exec(text)?.[0] ?? 'no public key' });
    return z.NEVER;
  }
});

/**
 * Reads a public key in one of the forms of a keyring.
 * @throws RangeError if it is none
 */
export function parsePublicKey(text: string): SshKey {
  const raw = RAW_KEY.exec(text)?.[1];
  if (raw !== undefined) return { type: 'ssh-ed25519', key: publicKeyOf(Buffer.from(raw, 'base64')) };
  const [type = '', bytes = ''] = text.split(' ');
  const key = parseSshKey(Buffer.from(bytes, 'base64'));
  if (key.type !== type) throw new RangeError(`is of type ${key.type}, not what its first word says`);
  return key;
}

const timeField = z.iso.datetime({ offset: true, error: 'must be a time such as 2030-01-31T09:00:00Z' });

const keyEntry = z.strictObject({
  name: keyNameField,
  role: z.enum(KEY_ROLES, { error: `must be one of ${KEY_ROLES.join(', ')}` }),
  person: personIdField,
  public: publicField,
  notBefore: timeField.transform((text) => Date.parse(text)).optional(),
  notAfter: timeField.transform((text) => Date.parse(text)).optional(),
  /** A stolen key: nothing it signed counts, whenever it was signed. */
  revoked: z.union([z.boolean(), timeField.transform(() => true)], 'must be true, false or a time').default(false),
});

const validKey = keyEntry.superRefine(({ notBefore = -Infinity, notAfter = Infinity }, context) => {
  // Not `>=`: in an entry with other problems, a time may still be invalid.
  if (!(notAfter < notBefore)) return;
  const input = new Date(notAfter).toISOString();
  context.addIssue({ code: 'custom', path: ['notAfter'], message: 'must not be before notBefore', input });
});

const keyringFile = z.strictObject({
  version: z.literal(1, { error: 'must be 1' }),
  keys: z.array(validKey, { error: 'must be a list of keys' }),
  people: z.record(personIdField, personField).default({}),
});

/** One public key of a keyring: its person, role and validity (wall clock, ms). */
export type KeyringKey = z.output<typeof keyEntry>;

export { SSH_KEY_TYPES };

/** What verifying needs: the keys that count, and their environment. */
export interface KeyFinder extends Audience {
  readonly find: (name: string) => KeyringKey | undefined;
}

export type BoundKeyring = Keyring & Audience;

/** The public keys whose signatures count. */
export class Keyring {
  readonly #keys: ReadonlyMap<string, KeyringKey>;
  readonly #displayNames: ReadonlyMap<string, string>;

  readonly #content: z.output<typeof keyringFile>;

  private constructor(content: z.output<typeof keyringFile>) {
    const { keys, people } = (this.#content = content);
    this.#keys = new Map(keys.map((key) => [key.name, key]));
    this.#displayNames = new Map(Object.entries(people));
  }

  /**
   * Parses a keyring file.
   * @param content - the parsed YAML or JSON
   * @throws InvalidConfigError naming every problem, such as `keys.2.public`
   */
  static parse(content: unknown): Keyring {
    // It may be a different file with a secret, so show nothing of it.
    if (typeof content !== 'object' || content === null || Array.isArray(content)) {
      throw new InvalidConfigError([{ field: 'keyring', message: 'must be "version: 1" and a list "keys"' }]);
    }
    const parsed = keyringFile.safeParse(content, { reportInput: true });
    if (!parsed.success) throw new InvalidConfigError(parsed.error.issues.map((issue) => toProblem(issue)));
    const problems = [...findDuplicates(parsed.data.keys), ...findConfusable(parsed.data)];
    if (problems.length > 0) throw new InvalidConfigError(problems);
    return new Keyring(parsed.data);
  }

  /** @internal */
  for(audience: string): BoundKeyring {
    return Object.assign(new Keyring(this.#content), { audience });
  }

  get keys(): readonly KeyringKey[] {
    return [...this.#keys.values()];
  }

  find(name: string): KeyringKey | undefined {
    return this.#keys.get(name);
  }

  /** A person's display name, if the keyring has one. It decides nothing. */
  displayNameOf(person: string): string | undefined {
    return this.#displayNames.get(person);
  }
}

/** A quorum counts people: two spellings of one person must not be two votes. */
function findConfusable({ keys, people }: z.output<typeof keyringFile>): Problem[] {
  const persons = keys.map(({ person }) => person);
  const lookAlikes = findLookAlikes(persons).map(({ id, other }) => ({
    field: `keys.${persons.indexOf(id)}.person`,
    message: `looks like the person of keys.${persons.indexOf(other)}. One person has one id, and the ids of two people differ in more than . _ - or l for 1, o for 0 (got "${id}" and "${other}")`,
  }));
  const unknown = Object.keys(people).filter((id) => !persons.includes(id));
  return [
    ...lookAlikes,
    ...unknown.map((id) => ({ field: `people.${id}`, message: 'is the person of no key: remove it, or add the key' })),
  ];
}

function findDuplicates(keys: readonly KeyringKey[]): Problem[] {
  const seen = new Map<string, number>();
  return keys.flatMap(({ name, public: { key } }, index): Problem[] => {
    const bytes = bytesOf(key).toString('hex');
    const [sameName, sameKey] = [seen.get(`name ${name}`), seen.get(bytes)];
    seen.set(`name ${name}`, index).set(bytes, index);
    const problems: Problem[] = [];
    if (sameName !== undefined) {
      const message = `is also the name of keys.${sameName} (got "${name}")`;
      problems.push({ field: `keys.${index}.name`, message });
    }
    if (sameKey !== undefined) {
      const message = `is also the key of keys.${sameKey}: one key, one person and one role`;
      problems.push({ field: `keys.${index}.public`, message });
    }
    return problems;
  });
}

export function isSignedBy(
  { public: publicKey }: Pick<KeyringKey, 'public'>,
  text: string,
  signature: string,
): boolean {
  if (isSshSignature(signature)) return verifySshText(text, signature, publicKey);
  return publicKey.type === 'ssh-ed25519' && verifyText(text, signature, publicKey.key);
}

/**
 * Reads a keyring, YAML or JSON.
 * @param field - the setting that names the file, for errors; @defaultValue `keyring`
 * @throws InvalidConfigError if the file is missing, not trusted or invalid
 */
export function readKeyringFile(path: string, field = 'keyring'): Keyring {
  return readNamedBy(field, path, () => Keyring.parse(parseYaml(readPublicBytes(path, PUBLIC_ONLY).toString('utf8'))));
}

const PUBLIC_ONLY = '. A keyring holds public keys only, and its readers are not the owner of a key';

function parseYaml(text: string): unknown {
  const { parse, YAMLParseError } = loadYaml();
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    throw new Error(`is no YAML: ${error.message.split('\n')[0] ?? ''}`, { cause: error });
  }
}
