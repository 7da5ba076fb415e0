import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { bytesOf, publicKeyOf, verifyText } from '../../src/control/keys/ed25519.js';
import { Keyring } from '../../src/control/keys/keyring.js';
import { isSshSignature, SSH_NAMESPACE, sshField, verifySshText } from '../../src/control/keys/ssh.js';
import { problemsOf as findProblems } from './support/folder.js';
import { keyEntry, keyringOf, testKey } from './support/keys.js';
import { readVectors } from './support/vectors.js';
import { signText } from './support/sign-at-once.js';

const TEXT = 'payout-queue intent v1\n';
const privateKey = testKey(1);
const publicKey = createPublicKey(privateKey);

/** The field of the curve, its constant, and the order of its base point. */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

/** The 32 bytes of an integer, least byte first. */
const encode = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();

it('a signature has one form', () => {
  const signature = signText(TEXT, privateKey);
  const bytes = Buffer.from(signature, 'base64url');
  // The same with S + L for S: a verifier that is careless takes it.
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`);
  const malleable = Buffer.concat([bytes.subarray(0, 32), encode(s + ORDER)]);
  const spareBits = signature.slice(0, -1) + String.fromCharCode(signature.charCodeAt(85) + 1);
  const altered = [malleable, bytes.subarray(0, 63), Buffer.concat([bytes, Buffer.alloc(1)])];
  for (const text of [
    ...[`${signature}\n`, `${signature.slice(0, 40)} ${signature.slice(40)}`, `${signature}==`, spareBits, ''],
    ...[bytes.toString('base64'), ...altered.map((other) => other.toString('base64url'))],
  ])
    expect([signature, text].map((given) => verifyText(TEXT, given, publicKey))).toEqual([true, false]);
});

it('a public key of small order is refused in all 14 encodings: one signature would be over every text', () => {
  // Of the eight points of small order, y is 1, -1, 0 (twice), or what doubling takes to 0 (four times).
  const y8 = BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826');
  expect([(121666n * D + 121665n) % P, (D * y8 ** 4n + 2n * y8 ** 2n - 1n) % P]).toEqual([0n, 0n]);
  const ys = [0n, 1n, P - 1n, y8, P - y8];
  const encodings = ys.flatMap((y) => (y + P < 2n ** 255n ? [y, y + P] : [y])).flatMap((y) => [y, y | (1n << 255n)]);
  expect(new Set(encodings).size).toBe(14);
  for (const bytes of encodings.map(encode)) {
    expect(() => publicKeyOf(bytes)).toThrow(new RangeError('is a weak key, for which anyone can sign'));
    const ssh = Buffer.concat([sshField('ssh-ed25519'), sshField(bytes)]);
    for (const text of [`ed25519:${bytes.toString('base64')}`, `ssh-ed25519 ${ssh.toString('base64')}`])
      expect(() => keyringOf(keyEntry(privateKey, { public: text }))).toThrow(/keys\.0\.public.* is a weak key/);
  }
  for (const length of [31, 33]) expect(() => publicKeyOf(Buffer.alloc(length, 7))).toThrow(RangeError);
});

/** In OpenSSH's format (PROTOCOL.sshsig), each with one thing that is wrong, and yet signed by the right key. */
describe('a signature of OpenSSH', () => {
  const [HEAD, TAIL] = ['-----BEGIN SSH SIGNATURE-----', '-----END SSH SIGNATURE-----'];
  const key = { type: 'ssh-ed25519', key: publicKey } as const;
  const blobOf = (number: number): Buffer =>
    Buffer.concat([sshField('ssh-ed25519'), sshField(bytesOf(createPublicKey(testKey(number))))]);
  const RIGHT = { namespace: SSH_NAMESPACE, hash: 'sha512', reserved: '', version: 1, magic: 'SSHSIG', named: 1 };

  function armour(given: Partial<typeof RIGHT & Record<'type' | 'behind' | 'behindSignature', string>> = {}) {
    const { namespace, hash, reserved, version, magic, named } = { ...RIGHT, ...given };
    const { type = 'ssh-ed25519', behind = '', behindSignature = '' } = given;
    const digest = createHash(hash).update(TEXT).digest();
    const context = [namespace, reserved, hash].map((field) => sshField(field));
    const signature = sign(null, Buffer.concat([Buffer.from(magic), ...context, sshField(digest)]), privateKey);
    const signed = Buffer.concat([sshField(type), sshField(signature), Buffer.from(behindSignature)]);
    const before = [Buffer.from(magic), Buffer.from([0, 0, 0, version]), sshField(blobOf(named))];
    const all = Buffer.concat([...before, ...context, sshField(signed), Buffer.from(behind)]).toString('base64');
    return [HEAD, ...(all.match(/.{1,70}/g) ?? []), TAIL, ''].join('\n');
  }

  it.each<[string, string]>([
    ['SHA-512', armour()],
    ['SHA-256', armour({ hash: 'sha256' })],
    ['CRLF', armour().replaceAll('\n', '\r\n')],
    ['a reserved field, which is signed', armour({ reserved: 'x' })],
  ])('counts with %s', (_, armoured) => {
    expect([isSshSignature(armoured), verifySshText(TEXT, armoured, key)]).toEqual([true, true]);
  });

  it.each<[string, string]>([
    ['another purpose', armour({ namespace: 'file' })],
    ['another key named in it', armour({ named: 2 })],
    ['a weaker hash', armour({ hash: 'sha1' })],
    ['another version', armour({ version: 2 })],
    ['another magic', armour({ magic: 'SSHSIX' })],
    ['another type of signature', armour({ type: 'sk-ssh-ed25519@openssh.com' })],
    ['more behind it', armour({ behind: 'x' })],
    ['more behind the signature', armour({ behindSignature: 'x' })],
    ['no tail', armour().split('\n').slice(0, -2).join('\n')],
    ['a cut', armour().replace(/.{20}\n-----END/, '\n-----END')],
    [
      'a length beyond its end',
      `${HEAD}\n${Buffer.from('SSHSIG\0\0\0\x01\xff\xff\xff\xff', 'latin1').toString('base64')}\n${TAIL}`,
    ],
  ])('is refused with %s', (_, armoured) => {
    expect(verifySshText(TEXT, armoured, key)).toBe(false);
  });
});

const { python } = readVectors();
const entry = keyEntry(testKey(1));
const other = keyEntry(testKey(2), { name: 'shop-2' });

const problemsOf = (content: unknown) => findProblems(() => Keyring.parse(content));
const problemsOfKey = (changes: object) => problemsOf({ version: 1, keys: [{ ...entry, ...changes }] });

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
    [
      { notBefore: '2030-01-31T09:00:00Z', notAfter: '2030-01-31T08:59:59Z' },
      'notAfter must not be before notBefore (got "2030-01-31T08:59:59.000Z")',
    ],
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
    const twice = (changes: object, second: object) =>
      problemsOf({ version: 1, keys: [{ ...entry, ...changes }, second] });
    const sameKey = ['keys.1.public is also the key of keys.0: one key, one person and one role'];
    expect(twice({}, { ...other, name: 'shop' })).toEqual(['keys.1.name is also the name of keys.0 (got "shop")']);
    expect(twice({}, { ...entry, name: 'b' })).toEqual(sameKey);
    expect(twice({ public: python.sshPublic }, { ...entry, name: 'b', public: python.skPublic })).toEqual(sameKey);
  });
});
