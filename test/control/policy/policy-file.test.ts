import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readPolicyFile, type LoadedPolicy } from '../../../src/control/policy/policy-file.js';
import { InvalidConfigError } from '../../../src/base/errors.js';
import { keyEntry, keyringOf, testKey, type KeyEntry } from '../support/keys.js';

const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const FIELD = 'PAYOUT_POLICY_FILE';
const KEYRING = keyringOf(approver(2, 'alice'), approver(3, 'bob'), approver(4, 'carol'));
const DENIED = '0x52908400098527886E0F7030069857D2E4169EE7';
const TON = ['EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF', 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff+W72r5gqPrHF'];
const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const POLICY = `version: 1
platformId: "4242"
default: hold
groups: { finance: [alice, bob, carol] }
rules:
  - { name: four-eyes, cap: { usd: "5000" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: flood, cap: { count: "500", within: 1h, per: signer }, over: wait }
  - { name: denied, when: { addressIn: deny.txt }, over: refuse }
`;
let folder: string;
let file: string;
let list: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'policy-'));
  file = join(folder, 'policy.yaml');
  list = join(folder, 'deny.txt');
  write(file, POLICY);
  write(list, `# stolen funds\n\n${DENIED}  # from a report\nTXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf\r\n`);
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(path: string, content: string | Buffer): void {
  writeFileSync(path, content, { mode: 0o644 });
}

function approver(seed: number, person: string, changes: Partial<KeyEntry> = {}): KeyEntry {
  return keyEntry(testKey(seed), { name: person, role: 'approver', person, ...changes });
}

const read = (keyring: typeof KEYRING | undefined = KEYRING, platformId: number | undefined = 4242): LoadedPolicy =>
  readPolicyFile(file, { platformId, keyring }, FIELD, NOW);

function problemsOf(load: () => unknown): string[] {
  try {
    load();
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.problems.map(({ field, message }) => `${field}: ${message}`);
    throw error;
  }
  return [];
}

describe('readPolicyFile', () => {
  it('reads the policy and its lists', () => {
    const { policy, hash, warnings, isListed, file: path } = read();
    expect(policy).toMatchObject({ platformId: 4242, uncovered: 'hold' });
    expect(policy.rules.map(({ name }) => name)).toEqual(['four-eyes', 'flood', 'denied']);
    expect({ path, warnings }).toEqual({ path: file, warnings: [] });
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(isListed('deny.txt', DENIED.toLowerCase(), 'wallet')).toBe(true);
    expect(isListed('deny.txt', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf:17', 'wallet')).toBe(true);
    for (const other of ['', '#', 'stolen', 'txyzopyrdj2d9xrtbg411xzz3km5vkaebf']) {
      expect(isListed('deny.txt', other, 'wallet')).toBe(false);
    }
    expect(() => isListed('allow.txt', DENIED, 'wallet')).toThrow('The policy has no list "allow.txt"');
  });

  it('finds the lists beside the file, also where it is a link', () => {
    const linked = join(folder, 'linked');
    mkdirSync(linked);
    symlinkSync(file, join(linked, 'policy.yaml'));
    symlinkSync(list, join(linked, 'deny.txt'));
    const { hash } = readPolicyFile(
      join(linked, 'policy.yaml'),
      { platformId: 4242, keyring: KEYRING },
      undefined,
      NOW,
    );
    expect(hash).toBe(read().hash);
    rmSync(join(linked, 'deny.txt'));
    expect(() => readPolicyFile(join(linked, 'policy.yaml'), { keyring: KEYRING }, undefined, NOW)).toThrow(
      /linked\/deny\.txt cannot be read: ENOENT/,
    );
  });

  it.each<[string, string | Buffer, RegExp]>([
    ['an empty file', '', /is no policy: it must have "version: 1"/],
    ['a list', '- a\n', /is no policy/],
    ['a secret in its place', 'k-gateway-secret-0123456789\n', /is no policy/],
    ['no YAML', 'rules: [', /it is no YAML: /],
    ['two documents', `${POLICY}---\n${POLICY}`, /it is no YAML: /],
    ['a field twice', `version: 1\n${POLICY}`, /it is no YAML: Map keys must be unique/],
    ['a type that the schema has not', POLICY.replace('"4242"', '!!int 4242'), /it is no YAML: Unresolved tag/],
    ['another version', POLICY.replace('version: 1', 'version: 1.0'), /version must be 1 \(got "1\.0"\)/],
    ['another account', POLICY.replace('4242', '4243'), /platformId must be 4242, .* \(got "4243"\)/],
    [
      'a field that is none',
      POLICY.replace('usd: "5000"', 'usd: "5000", euro: "1"'),
      /rules\.0\.cap\.euro is not a known field/,
    ],
    [
      'an amount that is none',
      POLICY.replace('"5000"', '5e3'),
      /rules\.0\.cap\.usd must be US dollars .*\(got "5e3"\)/,
    ],
    [
      'a list that is not there',
      POLICY.replace('deny.txt', 'none.txt'),
      /rules\.2\.when\.addressIn names a list that cannot be used: .*none\.txt cannot be read: ENOENT/,
    ],
  ])('refuses %s, with setting, file, field and value', (_, content, message) => {
    write(file, content);
    const problems = problemsOf(read);
    expect(problems.join('\n')).toMatch(message);
    for (const problem of problems) expect(problem).toContain(`${FIELD}: ${file}`);
    expect(problems.join('\n')).not.toContain('k-gateway-secret');
  });

  it('reads no number as one: what YAML would round stays exact', () => {
    const limit = '0.100000000000000001';
    const rule = `  - { name: a, when: { paymentId: [6] }, cap: { amount: ${limit} }, over: refuse }\n`;
    write(file, POLICY + rule);
    expect(read().policy.rules[3]?.cap?.limit).toBe(100_000_000_000_000_001n * 10n ** 18n);
  });

  it('names every problem at once', () => {
    write(file, POLICY.replace('4242', '7').replace('quorum: 2', 'quorum: 3'));
    write(list, 'two words\n');
    expect(problemsOf(() => read(keyringOf(approver(2, 'alice'))))).toEqual([
      expect.stringMatching(/platformId must be 4242/),
      expect.stringMatching(/rules\.2\.when\.addressIn .*deny\.txt line 1 must be one address/),
      expect.stringMatching(/rules\.0\.over\.approve\.quorum is 3/),
    ]);
  });

  it('takes a policy of any account where none is given', () => {
    expect(readPolicyFile(file, { keyring: KEYRING }, undefined, NOW).policy.platformId).toBe(4242);
  });
});

describe('who can change it', () => {
  it.each([0o664, 0o646, 0o666])('a policy of mode %#o is refused', (mode) => {
    chmodSync(file, mode);
    expect(problemsOf(read)).toEqual([
      expect.stringMatching(/is not trusted: others than its owner can write .*policy\.yaml .*chmod go-w/),
    ]);
  });

  it.each([0o664, 0o646, 0o666])('a list of mode %#o is refused', (mode) => {
    chmodSync(list, mode);
    expect(problemsOf(read)).toEqual([
      expect.stringMatching(/rules\.2\.when\.addressIn .*deny\.txt is not trusted: others than its owner can write/),
    ]);
  });

  it('a policy that was swapped in a folder of others is refused', () => {
    const swapped = join(folder, 'swapped.yaml');
    write(swapped, POLICY.replace('default: hold', 'default: send'));
    renameSync(swapped, file);
    chmodSync(folder, 0o777);
    expect(problemsOf(read).join('\n')).toMatch(new RegExp(`is not trusted: .* can write ${folder} `));
  });

  it('a list in a folder of others is refused', () => {
    const lists = join(folder, 'lists');
    mkdirSync(lists);
    write(join(lists, 'deny.txt'), `${DENIED}\n`);
    write(file, POLICY.replace('deny.txt', 'lists/deny.txt'));
    expect(read().isListed('lists/deny.txt', DENIED, 'wallet')).toBe(true);
    chmodSync(lists, 0o777);
    expect(problemsOf(read).join('\n')).toMatch(/rules\.2\.when\.addressIn .*can write .*lists /);
  });

  it('a private key in place of policy or list is refused, and nothing of it is shown', () => {
    const pem = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
    for (const path of [list, file]) {
      write(path, pem);
      const problems = problemsOf(read).join('\n');
      expect(problems).toMatch(/holds a private key/);
      expect(problems).not.toContain(pem.split('\n')[1]);
    }
  });
});

describe('a list of addresses', () => {
  it.each([
    ['two words', /line 2 must be one address, without spaces, commas and quotes \(got "two words"\)$/],
    ['a,b', /line 2 must be one address/],
    ['"quoted"', /line 2 must be one address/],
    [':tag', /line 2 must be one address/],
    ['bc1q\u00e9', /line 2 must be one address/],
    ['x'.repeat(257), /line 2 must be one address/],
    ['a b\nc d\ne f', /line 2 must be .*\(got "a b"\), and 2 more of its lines cannot be used$/],
  ])('with the line %j is refused', (line, message) => {
    write(list, `${DENIED}\n${line}\nTXYZ9\n`);
    expect(problemsOf(read)).toEqual([expect.stringMatching(message)]);
  });

  it.each([
    ['rExchange:12345', /line 2 \("rExchange:12345"\) must be without the destination tag: this rule holds/],
    ['EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF:5', /must be without the destination tag/],
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu', /must be without the destination tag/],
    [`${DENIED}:5`, /line 2 must be an address alone: no destination tag follows one of its kind \(got "0x529/],
    [`ethereum:${DENIED}`, /line 2 must be an address alone, without what is before its colon \(got "ethereum:0x/],
    ['bitcoincash:qMine', /line 2 is a CashAddr address of bitcoincash whose checksum is wrong \(got "bitcoincash:qM/],
    ['EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHG', /line 2 is a TON address whose checksum/],
  ])('that forbids %s is refused, which would hold nobody or more than it says', (line, message) => {
    write(list, `${DENIED}\n${line}\n`);
    expect(problemsOf(read)).toEqual([expect.stringMatching(message)]);
  });

  it('may name destination tags where it decides what a cap lets pass, and only there', () => {
    const cap = (name: string): string =>
      `  - { name: ${name}, when: { addressIn: deny.txt }, cap: { usd: "1" }, over: refuse }\n`;
    write(list, 'rExchange:12345\n');
    write(file, POLICY.replace(/ {2}- \{ name: denied.*\n/, cap('own') + cap('own-two')));
    const { isListed } = read();
    expect(isListed('deny.txt', 'rExchange:12345', 'recipient')).toBe(true);
    for (const other of ['rExchange', 'rExchange:66666']) expect(isListed('deny.txt', other, 'recipient')).toBe(false);
    expect(isListed('deny.txt', 'rExchange:66666', 'wallet')).toBe(true);
    write(file, POLICY + cap('own'));
    expect(problemsOf(read)).toEqual([
      expect.stringMatching(/rules\.2\.when\.addressIn .*without the destination tag/),
    ]);
    write(file, POLICY.replace('default: hold', 'default: send').replace(/ {2}- \{ name: denied.*\n/, cap('own')));
    expect(problemsOf(read)).toEqual([
      expect.stringMatching(/rules\.2\.when\.addressIn .*without the destination tag/),
    ]);
  });

  it.each([
    ['0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E', TON],
    ['UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA', TON],
    [`bitcoincash:${CASH}`, [CASH, CASH.toUpperCase(), `bitcoincash:${CASH}`.toUpperCase()]],
    ['osmo1qurswpc8qurswpc8qurswpc8qurswpc8mg52kn', []],
  ])('has a wallet in all its spellings, and with any tag: %s', (line, spellings) => {
    write(list, `${line}\n`);
    const { isListed } = read();
    for (const spelling of [line, line.toUpperCase().replace(/^UQ.*/, line), ...spellings, `${line}:5`]) {
      expect([spelling, isListed('deny.txt', spelling, 'wallet')]).toEqual([spelling, true]);
    }
  });

  it('may be empty', () => {
    write(list, '# none yet\n');
    expect(read().isListed('deny.txt', DENIED, 'wallet')).toBe(false);
  });
});

describe('the hash', () => {
  it('is the same for the same files', () => {
    expect(read().hash).toBe(read().hash);
  });

  it('changes with each byte of the policy and of a list, also in comments', () => {
    const hashes = new Set([read().hash]);
    write(list, `${DENIED}\n`);
    hashes.add(read().hash);
    write(list, `${DENIED}\n\n`);
    hashes.add(read().hash);
    write(file, `${POLICY}# \n`);
    hashes.add(read().hash);
    expect(hashes.size).toBe(4);
  });

  it('tells which list has which addresses, and where a list ends', () => {
    const two = `${POLICY}  - { name: other, when: { addressIn: other.txt }, over: refuse }\n`;
    write(file, two);
    const hashWith = (deny: string, other: string): string => {
      write(list, deny);
      write(join(folder, 'other.txt'), other);
      return read().hash;
    };
    const contents = ['', 'a\n', 'b\n', 'a\nb\n'];
    const hashes = contents.flatMap((deny) => contents.map((other) => hashWith(deny, other)));
    expect(new Set(hashes).size).toBe(16);
    // Comments that look like what stands between two lists.
    const between = '# list "other.txt"\n';
    expect(hashWith('# ', `a\n${between}`)).not.toBe(hashWith(`${between}a\n# `, ''));
  });
});

describe('the keyring', () => {
  it('has to be there for what needs signers and approvals', () => {
    expect(problemsOf(() => readPolicyFile(file, { platformId: 4242, keyring: undefined }, FIELD))).toEqual([
      expect.stringMatching(/rules\.0\.over\.approve needs the keyring.*set PAYOUT_KEYS_FILE.*\(got by: "finance"\)/),
      expect.stringMatching(/rules\.1\.cap\.per is signer, .*set PAYOUT_KEYS_FILE.*\(got "signer"\)/),
    ]);
  });

  it('is not needed for caps alone', () => {
    const rules = POLICY.split('\n').filter((line) => !/four-eyes|flood/.test(line));
    write(file, rules.join('\n'));
    expect(readPolicyFile(file, { platformId: 4242, keyring: undefined }).policy.rules).toHaveLength(1);
  });

  it.each<[string, KeyEntry]>([
    ['of another role', approver(3, 'bob', { role: 'operator' })],
    ['that is revoked', approver(3, 'bob', { revoked: true })],
    ['that has ended', approver(3, 'bob', { notAfter: '2026-11-21T19:59:59Z' })],
    ['of another person', approver(3, 'robert')],
  ])('does not reach a quorum with a key %s', (_, bob) => {
    expect(problemsOf(() => read(keyringOf(approver(2, 'alice'), bob)))).toEqual([
      expect.stringMatching(
        /rules\.0\.over\.approve\.quorum is 2, and of the group finance only alice has a valid key of an approver\. Add a key of bob, carol \(`payouts keys generate NAME --role approver`\)$/,
      ),
    ]);
  });

  it('has people who look like nobody else of a group', () => {
    const keyring = keyringOf(approver(2, 'alice'), approver(3, 'bob'), approver(4, 'car0l'));
    expect(problemsOf(() => read(keyring))).toEqual([
      expect.stringMatching(/groups\.finance names a person who looks like another: write "car0l" .*\(got "carol"\)$/),
    ]);
  });

  it('reaches a quorum with persons, not with keys', () => {
    const keyring = keyringOf(approver(2, 'alice'), approver(3, 'alice', { name: 'alice-yubi' }));
    expect(problemsOf(() => read(keyring)).join()).toMatch(/only alice has/);
  });

  it('is warned of where a person has no key, or can never have his own approved', () => {
    const bob = approver(3, 'bob', { notBefore: '2026-11-22T00:00:00Z', notAfter: '2026-11-30T00:00:00Z' });
    const producer = keyEntry(testKey(9), { person: 'alice' });
    expect(read(keyringOf(approver(2, 'alice'), bob, producer)).warnings).toEqual([
      'of the group finance these have no valid key of an approver: carol',
      'what alice signs as a producer never has 2 approvals by finance: nobody approves his own',
    ]);
  });
});
