import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { InvalidConfigError } from '../../../src/base/errors.js';
import { Keyring } from '../../../src/control/keys/keyring.js';
import { keyEntry, testKey } from '../support/keys.js';
import { readVectors } from '../support/vectors.js';

const { python } = readVectors();
const entry = keyEntry(testKey(1));
const other = keyEntry(testKey(2), { name: 'shop-2' });

function problemsOf(content: unknown): string[] {
  try {
    Keyring.parse(content);
  } catch (error) {
    return (error as InvalidConfigError).problems.map(({ field, message }) => `${field} ${message}`);
  }
  return [];
}
const problemsOfKey = (changes: object): string[] => problemsOf({ version: 1, keys: [{ ...entry, ...changes }] });

describe('a person of a keyring', () => {
  const keysOf = (...persons: string[]): object => ({
    version: 1,
    keys: persons.map((person, index) => keyEntry(testKey(index + 1), { name: `key-${index}`, person })),
  });

  it('is an id: display names of earlier keyrings are folded', () => {
    const persons = ['Ann', 'ann', 'Shop backend', "Rita O'Lee (EU)", 'ops@shop.example'];
    expect(Keyring.parse(keysOf(...persons)).keys.map(({ person }) => person)).toEqual([
      ...['ann', 'ann', 'shop-backend', 'rita-o-lee-eu-', 'ops-shop.example'],
    ]);
  });

  it.each([
    ['Cyrillic', '\u0410nn', 'U+0410 is not one of them'],
    ['zero-width', 'Ann\u200b', 'U+200B is not one of them'],
    ['that lower case turns into ASCII', '\u212aim', 'U+212A is not one of them'],
    ['but signs', '--', 'it has no letter or digit'],
  ])('has no character %s', (_, person, problem) => {
    const message = `keys.0.person must be an id of a-z 0-9 . _ -, and ${problem}`;
    expect(problemsOf(keysOf(person))).toEqual([expect.stringContaining(message)]);
  });

  it('is not told apart by what looks the same', () => {
    for (const [one = '', alike = ''] of [
      ['ann.lee', 'Ann Lee'],
      ['bill', 'bi11'],
      ['bob', 'B0b'],
    ]) {
      const message = /^keys\.3\.person looks like the person of keys\.1\. One person has one id/;
      expect(problemsOf(keysOf('rita', one, one, alike))).toEqual([expect.stringMatching(message)]);
    }
  });

  it('has a display name apart', () => {
    const keys = keysOf('ann');
    expect(Keyring.parse({ ...keys, people: { Ann: 'Änn Lee' } }).displayNameOf('ann')).toBe('Änn Lee');
    const unknown = 'people.bob is the person of no key: remove it, or add the key';
    expect(problemsOf({ ...keys, people: { bob: 'Bob' } })).toEqual([unknown]);
  });
});

describe('a keyring', () => {
  it('finds each key by its name, in base64, of OpenSSH or on hardware, and no other', () => {
    const url = entry.public.replace(/=$/, '').replaceAll('+', '-').replaceAll('/', '_');
    for (const text of [url, python.sshPublic, python.skPublic]) expect(problemsOfKey({ public: text })).toEqual([]);
    const keyring = Keyring.parse({ version: 1, keys: [entry, { ...other, notAfter: '2030-01-31T09:00:00Z' }] });
    expect(keyring.find('shop-2')).toMatchObject({ notAfter: Date.parse('2030-01-31T09:00:00Z'), revoked: false });
    for (const name of ['nobody', '__proto__', 'toString']) expect(keyring.find(name)).toBeUndefined();
  });

  const PEM = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
  const SECRET = PEM.split('\n')[1] ?? '';
  const PUBLIC = 'must be "ed25519:" and 43 characters of base64, or a public key of OpenSSH';
  const [SSH_TYPE = '', SSH_BYTES = ''] = python.sshPublic.split(' ');

  it('is a version and a list, of which nothing is shown where it is something else', () => {
    expect(problemsOf(SECRET)).toEqual(['keyring must be "version: 1" and a list "keys"']);
    const other = { version: 2, keys: { shop: entry }, key: entry };
    const problems = [
      'version must be 1 (got 2)',
      expect.stringMatching(/^keys must be a list/),
      'key is not a known field',
    ];
    expect(problemsOf(other)).toEqual(problems);
  });

  it.each<[object, string]>([
    [{ name: 'a b' }, 'name must be 1 to 32 of A-Z a-z 0-9 . _ - and begin with a letter or digit (got "a b")'],
    [{ person: 'A\nB' }, 'person must be 1 to 64 characters on one line (got "A\\nB")'],
    [
      { notBefore: '2030-01-31T09:00:00Z', notAfter: '2030-01-31T08:59:59Z' },
      'notAfter must not be before notBefore (got "2030-01-31T08:59:59.000Z")',
    ],
    [{ revoked: 'yes' }, 'revoked must be true, false or a time (got "yes")'],
    [{ public: `${entry.public}A` }, `it ${PUBLIC}`],
    [{ public: `${SSH_TYPE} ${SSH_BYTES.slice(0, -8)}` }, 'public is cut off: it must be'],
    [{ public: `${SSH_TYPE} ${SSH_BYTES}AAAA` }, 'public has more than its fields: it must be'],
    [{ public: `sk-ssh-ed25519@openssh.com ${SSH_BYTES}` }, 'is of type ssh-ed25519, not what its first word says'],
    [{ public: `ssh-rsa ${Buffer.from('\0\0\0\x07ssh-rsa').toString('base64')}` }, 'is no Ed25519 key of OpenSSH: it'],
  ])('names field, rule and value: %j', (changes, problem) => {
    expect(problemsOfKey(changes).join()).toContain(problem);
  });

  it('shows nothing of a private key that was given as public', () => {
    const rsaKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    const rsa = rsaKey.export({ format: 'pem', type: 'pkcs1' }).toString();
    for (const text of [PEM, SECRET, rsa, `ed25519:${SECRET}`, `ssh-ed25519 ${SECRET}`]) {
      const problem = problemsOfKey({ public: text }).join();
      expect(problem).toContain(PUBLIC);
      expect(problem).not.toContain('BEGIN');
      expect(problem).not.toContain(SECRET.slice(0, 8));
    }
  });

  it('refuses a name, and a key in any form, twice', () => {
    const twice = (changes: object, second: object): string[] =>
      problemsOf({ version: 1, keys: [{ ...entry, ...changes }, second] });
    const sameKey = ['keys.1.public is also the key of keys.0: one key, one person and one role'];
    expect(twice({}, { ...other, name: 'shop' })).toEqual(['keys.1.name is also the name of keys.0 (got "shop")']);
    expect(twice({}, { ...entry, name: 'b' })).toEqual(sameKey);
    expect(twice({ public: python.sshPublic }, { ...entry, name: 'b', public: python.skPublic })).toEqual(sameKey);
  });
});
