import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { InvalidConfigError } from '../../../src/base/errors.js';
import { Keyring } from '../../../src/control/keys/keyring.js';
import { formatPublicKey } from '../../../src/control/keys/signing-key.js';
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
    ['Cyrillic', '\u0410nn', 'U+0410'],
    ['NFC', 'Andr\u00e9', 'U+00E9'],
    ['NFD', 'Andre\u0301', 'U+0301'],
    ['zero-width', 'Ann\u200b', 'U+200B'],
    ['that lower case turns into ASCII', '\u212aim', 'U+212A'],
    ['beyond the first plane', '\u{1d400}nn', 'U+1D400'],
  ])('has no %s character', (_, person, character) => {
    expect(problemsOf(keysOf(person))).toEqual([
      expect.stringContaining(`keys.0.person must be an id of a-z 0-9 . _ -, and ${character} is not one of them`),
    ]);
  });

  it.each(['.', '--', '('])('has a letter or digit: not %s', (person) => {
    expect(problemsOf(keysOf(person)).join()).toContain('keys.0.person must be an id of a-z 0-9 . _ -, and it has no');
  });

  it.each([
    ['ann.lee', 'Ann Lee'],
    ['annlee', 'ann_lee'],
    ['bill', 'bi11'],
    ['bob', 'B0b'],
  ])('is not told apart by what looks the same: %s and %s', (one, alike) => {
    expect(problemsOf(keysOf('rita', one, one, alike))).toEqual([
      expect.stringMatching(/^keys\.3\.person looks like the person of keys\.1\. One person has one id/),
    ]);
  });

  it('has a display name apart', () => {
    const keys = keysOf('ann');
    expect(Keyring.parse({ ...keys, people: { Ann: 'Änn Lee' } }).displayNameOf('ann')).toBe('Änn Lee');
    const unknown = 'people.bob is the person of no key: remove it, or add the key';
    expect(problemsOf({ ...keys, people: { bob: 'Bob' } })).toEqual([unknown]);
    expect(problemsOf({ ...keys, people: { '\u0410nn': 'Ann' } }).join()).toContain('people.');
  });
});

describe('a keyring', () => {
  it('finds each key by its name, and no other', () => {
    const keyring = Keyring.parse({ version: 1, keys: [entry, { ...other, notAfter: '2030-01-31T09:00:00Z' }] });
    expect(keyring.keys.map(({ name }) => name)).toEqual(['shop', 'shop-2']);
    expect(keyring.find('shop-2')).toMatchObject({ notAfter: Date.parse('2030-01-31T09:00:00Z'), revoked: false });
    for (const name of ['nobody', '__proto__', 'toString'])
      expect([name, keyring.find(name)]).toEqual([name, undefined]);
  });

  const base64 = formatPublicKey(testKey(1));
  it.each([
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64url', base64.replace(/=$/, '').replaceAll('+', '-').replaceAll('/', '_')],
    ['OpenSSH', python.sshPublic],
    ['a key on hardware', python.skPublic],
  ])('accepts %s', (_, text) => {
    expect(problemsOfKey({ public: text })).toEqual([]);
  });

  const PEM = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
  const SECRET = PEM.split('\n')[1] ?? '';

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'keyring must be "version: 1" and a list "keys"'],
    ['null', null, 'keyring must be'],
    ['a text', SECRET, 'keyring must be'],
    ['a list', [entry], 'keyring must be'],
    ['no version', { keys: [] }, 'version is missing'],
    ['another version', { version: 2, keys: [] }, 'version must be 1 (got 2)'],
    ['a version as text', { version: '1', keys: [] }, 'version must be 1 (got "1")'],
    ['no keys', { version: 1 }, 'keys is missing'],
    ['keys by name', { version: 1, keys: { shop: entry } }, 'keys must be a list of keys'],
    ['a field more', { version: 1, keys: [], key: entry }, 'key is not a known field'],
  ])('refuses %s', (_, content, problem) => {
    expect(problemsOf(content).join('; ')).toContain(problem);
  });

  const [NAME, PERSON, ROLE] = ['name must be 1 to 32', 'person must be 1 to 64', 'role must be one of producer,'];
  const [AFTER, TIME] = ['notAfter must', 'must be a time such as 2030-01-31T09:00:00Z'];
  const PUBLIC = 'must be "ed25519:" and 43 characters of base64, or a public key of OpenSSH';
  const [SSH_TYPE = '', SSH_BYTES = ''] = python.sshPublic.split(' ');
  const RSA = Buffer.from('\0\0\0\x07ssh-rsa').toString('base64');
  it.each<[object, string]>([
    [{ name: 'a b' }, `${NAME} of A-Z a-z 0-9 . _ - and begin with a letter or digit (got "a b")`],
    [{ name: '' }, NAME],
    [{ name: 'x'.repeat(33) }, NAME],
    [{ name: 'a\n' }, NAME],
    [{ name: 7 }, 'name must be a string (got 7)'],
    [{ name: undefined }, 'name is missing'],
    [{ role: 'admin' }, `${ROLE} approver, operator, worker (got "admin")`],
    [{ role: undefined }, 'role is missing'],
    [{ person: ' Ann' }, 'person must not begin or end with spaces (got " Ann")'],
    [{ person: 'A\nB' }, `${PERSON} characters on one line (got "A\\nB")`],
    [{ person: 'x'.repeat(65) }, PERSON],
    [{ notBefore: 'tomorrow' }, `notBefore ${TIME} (got "tomorrow")`],
    ...['2030-01-31', '2030-01-31T09:00:00', null].map((text): [object, string] => [
      { notAfter: text },
      `notAfter ${TIME}`,
    ]),
    [
      { notBefore: '2030-01-31T09:00:00Z', notAfter: '2030-01-31T08:59:59Z' },
      `${AFTER} not be before notBefore (got "2030-01-31T08:59:59.000Z")`,
    ],
    [{ revoked: 'yes' }, 'revoked must be true, false or a time (got "yes")'],
    [{ revoked: null }, 'revoked must be true, false or a time (got null)'],
    [{ public: undefined }, 'public is missing'],
    [{ public: 7 }, `public ${PUBLIC}`],
  ])('names field, rule and value: %j', (changes, problem) => {
    expect(problemsOfKey(changes)).toEqual([expect.stringContaining(`keys.0.${problem}`)]);
  });

  it.each<[object, string]>([
    [{ revoekd: true }, 'revoekd is not a known field'],
    [{ public: 'ed25519:AAAA' }, `it ${PUBLIC}`],
    [{ public: `${entry.public}A` }, `it ${PUBLIC}`],
    [{ public: `${SSH_TYPE} ${SSH_BYTES.slice(0, -8)}` }, 'keys.0.public is cut off: it must be'],
    [{ public: `${SSH_TYPE} ${SSH_BYTES}AAAA` }, 'keys.0.public has more than its fields: it must be'],
    [{ public: `sk-ssh-ed25519@openssh.com ${SSH_BYTES}` }, 'is of type ssh-ed25519, not what its first word says'],
    [{ public: `ssh-rsa ${RSA}` }, 'is no Ed25519 key of OpenSSH: it'],
    [{ public: 'ssh-rsa AAAA' }, '(got "ssh-rsa")'],
  ])('names what is wrong with %j', (changes, problem) => {
    expect(problemsOfKey(changes)).toEqual([expect.stringContaining(problem)]);
  });

  const rsaKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const rsa = rsaKey.export({ format: 'pem', type: 'pkcs1' }).toString();
  it.each([PEM, SECRET, rsa, `ed25519:${SECRET}`, `ssh-ed25519 ${SECRET}`])(
    'shows nothing of a private key that was given as public',
    (text) => {
      const problem = problemsOfKey({ public: text }).join();
      expect(problem).toContain(PUBLIC);
      for (let at = 0; at + 8 <= SECRET.length; at += 1) expect(problem).not.toContain(SECRET.slice(at, at + 8));
      expect(problem).not.toContain('BEGIN');
    },
  );

  it('names every problem at once', () => {
    const keys = [
      { ...entry, role: 'x' },
      { ...other, name: '' },
    ];
    const fields = problemsOf({ version: 2, keys }).map((problem) => problem.split(' ')[0]);
    expect(fields).toEqual(['version', 'keys.0.role', 'keys.1.name']);
  });

  const TWICE = 'keys.1.public is also the key of keys.0: one key, one person and one role';
  it.each([
    ['the same name', {}, { ...other, name: 'shop' }, 'keys.1.name is also the name of keys.0 (got "shop")'],
    ['the same key', {}, { ...entry, name: 'b' }, TWICE],
    [
      'the same key in another form',
      { public: python.sshPublic },
      { ...entry, name: 'b', public: python.skPublic },
      TWICE,
    ],
  ])('refuses %s twice', (_, changes, second, problem) => {
    expect(problemsOf({ version: 1, keys: [{ ...entry, ...changes }, second] })).toEqual([problem]);
  });
});
