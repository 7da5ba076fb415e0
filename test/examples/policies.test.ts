import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeRule } from '../../src/control/policy/rule.js';
import { readPolicyFile, type LoadedPolicy } from '../../src/control/policy/policy-file.js';
import { keyEntry, keyringOf, testKey } from '../control/support/keys.js';

/** The policies of the examples load, with every person of their groups in the keyring, and mean what docs/control.md says. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PERSONS = ['alice', 'bob', 'carol', 'dora', 'emil', 'fay', 'gus'];
const keyring = keyringOf(
  ...PERSONS.map((person, index) => keyEntry(testKey(index + 1), { name: person, role: 'approver', person })),
);
let folder: string;

beforeAll(() => {
  // The folder of a checkout may be one that others can write.
  folder = mkdtempSync(join(tmpdir(), 'policies-'));
  cpSync(join(ROOT, 'examples'), folder, { recursive: true, mode: 0 });
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const read = (name: string, signed = true): LoadedPolicy =>
  readPolicyFile(join(folder, name), { platformId: 4242, keyring: signed ? keyring : undefined });

const cookbook = readdirSync(join(ROOT, 'examples/policies')).filter((name) => name.endsWith('.yaml'));

it('docs/control.md leads to each', () => {
  expect(cookbook).toEqual(['exchange.yaml', 'shop.yaml', 'treasury.yaml']);
  const text = readFileSync(join(ROOT, 'docs/control.md'), 'utf8');
  for (const name of ['policy.yaml', ...cookbook.map((each) => `policies/${each}`)])
    expect(text).toContain(`(../examples/${name})`);
});

it.each(['policy.yaml', ...cookbook.map((name) => `policies/${name}`)])(
  'examples/%s loads, without a warning',
  (name) => {
    const { policy, warnings } = read(name);
    expect(policy.uncovered).toBe('hold');
    expect(warnings).toEqual([]);
  },
);

it('the policy of a shop needs no keyring', () => {
  expect(read('policies/shop.yaml', false).policy.rules).toHaveLength(5);
});

it('each rule of examples/policy.yaml says whom it is about, its limit, and what becomes of the rest', () => {
  expect(read('policy.yaml').policy.rules.map(describeRule)).toEqual([
    'every payout: at most 50000.00 USD each, else it is held until the policy changes',
    'every payout: at most 5000.00 USD each, else it needs 2 approvals by finance',
    'every payout: at most 100000.00 USD in any 24 h, else it waits until there is room',
    'every payout: at most 10000.00 USD in any 24 h to one address, else it needs 1 approval by finance, or room',
    'a payout in currency 10: at most 2.5 in any 24 h, else it waits until there is room',
    'every payout: at most 500 sends in any 1 h signed with one key, else it waits until there is room',
    'a payout to an address first seen less than 24 h ago, worth more than 200.00 USD: waits until the 24 h are over',
    'a payout to an address of deny.txt: it is held until the policy changes',
    'a payout worth more than 1000.00 USD: only Mon-Fri 08:00-18:00 Europe/Berlin, else it waits until then',
  ]);
});
