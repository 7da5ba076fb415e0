import { paymentOf } from '../../src/control/approvals/approval.js';
import { rmSync, symlinkSync } from 'node:fs';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { explainPayout, type Explanation, type WorkerReport } from '../../src/control/operator/explain-payout.js';
import { CurrentPolicy, openPolicies } from '../../src/control/policy/current-policy.js';
import { type LoadedPolicy, readPolicyFile } from '../../src/control/policy/policy-file.js';
import { parsePolicy } from '../../src/control/policy/policy.js';
import type { SignedApproval } from '../../src/ledger/control-record.js';
import type { Payout } from '../../src/ledger/payout.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { recordingLogger } from '../gateway/support/test-client.js';
import { problemsOf, useFolder } from './support/folder.js';
import { type KeyEntry, keyEntry, keyringOf, testKey } from './support/keys.js';
import { DAY_MS, entryOf, intentHashOf, iso, NOW, PLATFORM, signApproval, signIntent } from './support/signed.js';

const FIELD = 'PAYOUT_POLICY_FILE';
const approver = (key: number, person: string, changes: Partial<KeyEntry> = {}): KeyEntry =>
  entryOf(key, person, 'approver', changes);
const KEYRING = keyringOf(approver(2, 'alice'), approver(3, 'bob'), approver(4, 'carol'));
const DENIED = '0x52908400098527886E0F7030069857D2E4169EE7';
const DENY_RULE = '  - { name: denied, when: { addressIn: deny.txt }, over: refuse }\n';
const POLICY = `version: 1
platformId: "4242"
default: hold
groups: { finance: [alice, bob, carol] }
rules:
  - { name: four-eyes, cap: { usd: "5000" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: flood, cap: { count: "500", within: 1h, per: signer }, over: wait }
${DENY_RULE}`;
/** Lets what a list has pass, up to a dollar. */
const OWN_RULE = DENY_RULE.replace('denied', 'own').replace('over', 'cap: { usd: "1" }, over');

const folder = useFolder();
const policy = (text: string) => {
  folder.write('policy.yaml', text);
};
const list = (text: string) => {
  folder.write('deny.txt', text);
};
beforeEach(() => {
  policy(POLICY);
  list(`# stolen funds\n\n${DENIED}  # from a report\nTXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf\r\n`);
});

const read = (keyring: typeof KEYRING | 'none' = KEYRING, name = 'policy.yaml'): LoadedPolicy =>
  readPolicyFile(folder.at(name), { platformId: 4242, keyring: keyring === 'none' ? undefined : keyring }, FIELD, NOW);
const isListed = (address: string, as: 'wallet' | 'recipient' = 'wallet') => read().isListed('deny.txt', address, as);

const problems = (keyring: typeof KEYRING | 'none' = KEYRING) => problemsOf(() => read(keyring));

describe('readPolicyFile', () => {
  it('reads the policy and its lists beside the file, also where it is a link', () => {
    const loaded = read();
    expect(loaded.policy).toMatchObject({ platformId: 4242, uncovered: 'hold' });
    expect(loaded).toMatchObject({ file: folder.at('policy.yaml'), warnings: [] });
    for (const denied of [DENIED.toLowerCase(), 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf:17'])
      expect(isListed(denied)).toBe(true);
    for (const other of ['', '#', 'stolen', 'txyzopyrdj2d9xrtbg411xzz3km5vkaebf']) expect(isListed(other)).toBe(false);
    expect(() => loaded.isListed('allow.txt', DENIED, 'wallet')).toThrow('The policy has no list "allow.txt"');
    folder.make('linked');
    for (const name of ['policy.yaml', 'deny.txt']) symlinkSync(folder.at(name), folder.at('linked', name));
    expect(read(KEYRING, 'linked/policy.yaml').hash).toBe(loaded.hash);
    rmSync(folder.at('linked/deny.txt'));
    expect(() => read(KEYRING, 'linked/policy.yaml')).toThrow(/linked\/deny\.txt cannot be read: ENOENT/);
  });

  const put = (from: string, to: string) => POLICY.replace(from, to);
  it.each<[string, string, RegExp]>([
    ['a secret in its place', 'k-gateway-secret-0123456789\n', /is no policy/],
    ['a type that the schema has not', put('"4242"', '!!int 4242'), /it is no YAML: Unresolved tag/],
    ['a group that looks like another', put('carol]', 'carol, car0l]'), /groups\.finance names a person who looks/],
    ['a list that is not there', put('deny.txt', 'none.txt'), /rules\.2\.when\.addressIn .*none\.txt cannot be read/],
  ])('refuses %s, with setting, file, field and value', (_, content, message) => {
    policy(content);
    const found = problems();
    expect(found.join('\n')).toMatch(message);
    for (const problem of found) expect(problem).toContain(`${FIELD} ${folder.at('policy.yaml')}`);
    expect(found.join('\n')).not.toContain('k-gateway-secret');
  });

  it('names every problem at once', () => {
    policy(put('4242', '7').replace('quorum: 2', 'quorum: 3'));
    list('two words\n');
    expect(problems(keyringOf(approver(2, 'alice')))).toEqual([
      expect.stringMatching(/platformId must be 4242/),
      expect.stringMatching(/rules\.2\.when\.addressIn .*deny\.txt line 1 must be one address/),
      expect.stringMatching(/rules\.0\.over\.approve\.quorum is 3/),
    ]);
  });
});

describe('a list of addresses', () => {
  it.each([
    ['two words', /line 2 must be one address, without spaces, commas and quotes \(got "two words"\)$/],
    // These would hold nobody, or more than they say.
    ['rExchange:12345', /line 2 \("rExchange:12345"\) must be without the destination tag: this rule holds/],
    [`${DENIED}:5`, /line 2 must be an address alone: no destination tag follows one of its kind \(got "0x529/],
    [`ethereum:${DENIED}`, /line 2 must be an address alone, without what is before its colon \(got "ethereum:0x/],
    ['bitcoincash:qMine', /line 2 is a CashAddr address of bitcoincash whose checksum is wrong/],
  ])('with the line %j is refused', (line, message) => {
    list(`${DENIED}\n${line}\nTXYZ9\n`);
    expect(problems()).toEqual([expect.stringMatching(message)]);
  });

  it('may name destination tags where it decides what a cap lets pass, and only there', () => {
    const REFUSED = [expect.stringMatching(/rules\.2\.when\.addressIn .*without the destination tag/)];
    list('rExchange:12345\n');
    policy(POLICY.replace(DENY_RULE, OWN_RULE + OWN_RULE.replace('own', 'own-two')));
    expect(isListed('rExchange:12345', 'recipient')).toBe(true);
    for (const other of ['rExchange', 'rExchange:66666']) expect(isListed(other, 'recipient')).toBe(false);
    expect(isListed('rExchange:66666')).toBe(true);
    policy(POLICY + OWN_RULE);
    expect(problems()).toEqual(REFUSED);
    policy(POLICY.replace('default: hold', 'default: send').replace(DENY_RULE, OWN_RULE));
    expect(problems()).toEqual(REFUSED);
  });
});

it('the hash changes with each byte of the policy and of a list, also in comments, and with where a list ends', () => {
  const before = read().hash;
  policy(`${POLICY}# \n`);
  expect(read().hash).not.toBe(before);
  policy(`${POLICY}  - { name: other, when: { addressIn: other.txt }, over: refuse }\n`);
  const hashWith = (deny: string, other: string) => {
    list(deny);
    folder.write('other.txt', other);
    return read().hash;
  };
  const contents = ['', 'a\n', 'b\n', 'a\nb\n'];
  expect(new Set(contents.flatMap((deny) => contents.map((other) => hashWith(deny, other)))).size).toBe(16);
  // Comments that look like what stands between two lists.
  const between = '# list "other.txt"\n';
  expect(hashWith('# ', `a\n${between}`)).not.toBe(hashWith(`${between}a\n# `, ''));
});

describe('the keyring', () => {
  it('has to be there for what needs signers and approvals, and not for caps alone', () => {
    expect(problems('none')).toEqual([
      expect.stringMatching(/rules\.0\.over\.approve needs the keyring.*set PAYOUT_KEYS_FILE.*\(got by: "finance"\)/),
      expect.stringMatching(/rules\.1\.cap\.per is signer, .*set PAYOUT_KEYS_FILE.*\(got "signer"\)/),
    ]);
    policy(POLICY.replace(/.*(four-eyes|flood).*\n/g, ''));
    expect(read('none').policy.rules).toHaveLength(1);
  });

  it('does not reach a quorum with a key of another role, revoked, ended, or of another or the same person', () => {
    for (const second of [
      approver(3, 'bob', { role: 'operator' }),
      approver(3, 'bob', { revoked: true }),
      approver(3, 'bob', { notAfter: iso(NOW - 1) }),
      approver(3, 'robert'),
      approver(3, 'alice-yubi', { person: 'alice' }),
    ]) {
      const message = /quorum is 2, and of the group finance only alice has a valid key .* Add a key of bob, carol/;
      expect(problems(keyringOf(approver(2, 'alice'), second))).toEqual([expect.stringMatching(message)]);
    }
  });

  it('is warned of where a person has no key, or can never have his own approved', () => {
    const bob = approver(3, 'bob', { notBefore: '2026-11-22T00:00:00Z', notAfter: '2026-11-30T00:00:00Z' });
    const producer = entryOf(9, 'shop', 'producer', { person: 'alice' });
    expect(read(keyringOf(approver(2, 'alice'), bob, producer)).warnings).toEqual([
      'of the group finance these have no valid key of an approver: carol',
      'what alice signs as a producer never has 2 approvals by finance: nobody approves his own',
    ]);
  });
});

describe('the policy of a worker', () => {
  let logger: ReturnType<typeof recordingLogger>;
  beforeEach(() => {
    logger = recordingLogger();
    write();
  });

  function write({ within = '1h', uncovered = 'hold', over = 'wait' } = {}) {
    const rule = `{ name: a, cap: { usd: "1", within: ${within} }, over: ${over} }`;
    policy(`{ version: 1, platformId: 4242, default: ${uncovered}, groups: { finance: [alice] }, rules: [${rule}] }`);
  }
  const open = (keyring?: Pick<typeof KEYRING, 'keys'>): CurrentPolicy =>
    new CurrentPolicy(() => readPolicyFile(folder.at('policy.yaml'), { platformId: 4242, keyring }, FIELD), logger);

  it('is another after a reload, whole, and each is told', () => {
    const current = open();
    const { policy: first, hash } = current;
    const fields = { policyFile: folder.at('policy.yaml'), policyHash: hash, default: 'hold', rules: ['a'] };
    expect(logger.lines).toMatchObject([{ fields, message: 'payouts that the policy does not let pass are held' }]);
    write({ uncovered: 'send' });
    current.reload();
    expect([first.uncovered, current.policy.uncovered, current.reloadTrouble]).toEqual(['hold', 'send', undefined]);
    expect(current.hash).not.toBe(hash);
    expect(logger.lines.at(-1)).toMatchObject({ message: 'the policy was read again', fields: { default: 'send' } });
  });

  it('stays what it was where the file is wrong, or has a window whose sends were not read, until it is good', () => {
    const current = open();
    const { policy: first, hash } = current;
    write({ within: '25h' });
    current.reload();
    expect([current.policy, current.hash]).toEqual([first, hash]);
    expect(current.reloadTrouble).toMatch(/cap\.within is 25 h, .*last 24 h\. Restart it/);
    expect(logger.lines.at(-1)?.message).toContain('still counts');
    write({ within: '24h' });
    current.reload();
    expect(current.reloadTrouble).toBeUndefined();
    write({ within: '7d' });
    expect([current.longestWindowMs, open().longestWindowMs]).toEqual([DAY_MS, 7 * DAY_MS]);
  });

  it('is compared with the keyring as it is at the reload', () => {
    let revoked = false;
    const keyring = {
      get keys() {
        return keyringOf(approver(2, 'alice', { revoked })).keys;
      },
    };
    write({ over: '{ approve: { by: finance, quorum: 1 } }' });
    const current = open(keyring);
    revoked = true;
    current.reload();
    expect(current.reloadTrouble).toMatch(/quorum is 1, and of the group finance nobody has a valid key/);
  });

  it('is one of each account that has one; all their problems refuse the start', () => {
    const policyFile = folder.at('policy.yaml');
    const openAll = (...platformIds: number[]) => {
      const accounts = platformIds.map((platformId) => ({ platformId, policyFile }));
      return openPolicies([...accounts, { platformId: 6 }], undefined, new ManualClock(), logger);
    };
    expect([...openAll(4242).keys()]).toEqual([4242]);
    expect(() => openAll(7, 8)).toThrow(/^PAYOUT_POLICY_FILE: .*platformId must be 7,[^]*platformId must be 8,/);
  });
});

/** What a host that sends nothing says of a payout. */

const PEOPLE = keyringOf(
  keyEntry(testKey(1)),
  ...['alice', 'bob', 'rita'].map((name, n) => entryOf(n + 2, name, 'approver')),
);
const RULES = `{ version: 1, platformId: ${PLATFORM}, default: send, groups: { finance: [alice, bob] }, usd: { pinned: { "6": "1" } },
  rules: [
    { name: two, cap: { usd: "5" }, over: { approve: { by: finance, quorum: 2 } } },
    { name: cool, when: { address: new }, over: { wait: 24h } },
    { name: wallet, when: { paymentId: ["7"] }, cap: { usd: "100", within: 24h, per: address }, over: wait } ] }`;
const LOADED: LoadedPolicy = {
  policy: parsePolicy(parse(RULES, { schema: 'failsafe' })),
  ...{ hash: '', file: '', warnings: [], isListed: () => false },
};
const fields = { payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', requestedBy: 'Rita' };
const signed = signIntent(fields, { requestedBy: 'Rita' });

function approvalOf(key: 2 | 3, decision: 'approve' | 'reject' = 'approve'): SignedApproval {
  const by = key === 2 ? 'alice' : 'bob';
  const payment = decision === 'approve' ? paymentOf(fields) : {};
  return signApproval(key, { payoutId: 'p', intent: intentHashOf({ ...fields, signed }), decision, by, ...payment });
}

function explain(changes: Partial<Payout> = {}, keyring: typeof PEOPLE | 'none' = PEOPLE, told?: WorkerReport) {
  const history = { history: [], createdAt: iso(NOW), updatedAt: iso(NOW), attempt: 0, requeueCount: 0 };
  const payout: Payout = { ...fields, ...history, state: 'held', final: false, signed, ...changes };
  return explainPayout(payout, LOADED, keyring === 'none' ? undefined : keyring, NOW + 1, told);
}
const verdictOf = ({ decision }: Explanation, name: string): object | undefined =>
  decision.all.find(({ rule }) => rule === name);

it('counts approvals and rejections, and none of what is not verified; takes an address for new, and says so', () => {
  const approvals = [approvalOf(2), approvalOf(3)];
  const rejected = explain({ approvals: [...approvals, approvalOf(3, 'reject')] });
  expect(rejected.rejectedBy).toEqual(['bob']);
  expect(verdictOf(explain({ approvals }), 'two')).toMatchObject({ kind: 'send' });
  const altered = explain({ amount: '12.6', approvals });
  expect(verdictOf(altered, 'two')).toMatchObject({ kind: 'approve', missing: 2 });
  expect(altered.unverified).toMatch(/was altered/);
  expect(() => explain({ amount: '-1' })).toThrow('A field of payout p was altered: amount (got "-1")');
  expect(explain({ approvals }, 'none').approvals.approvedBy.size).toBe(0);
  expect(verdictOf(altered, 'cool')).toMatchObject({ kind: 'wait', until: NOW + 1 + DAY_MS });
  expect(altered.unknown).toEqual(['when its address was first seen: it counts as seen now']);
});

describe('with what the worker told', () => {
  const explainWith = (spent: string, rate = '2'): Explanation => {
    const about = { rule: 'wallet', unit: 'usd', limit: '100.00', withinMs: DAY_MS, per: 'address' } as const;
    const bucketOf = (bucket: string, sum: string) => ({ bucket, spent: sum, wanted: '0.00', ratio: 0.5 });
    const windows = [{ ...about, unknown: null, buckets: [bucketOf('other', '99.00'), bucketOf('txyz9', spent)] }];
    return explain({ paymentId: 7, addressTo: 'txyz9' }, 'none', { at: NOW - 5_000, rates: [[7, rate]], windows });
  };

  it.each([
    ['equality passes', '75.00', '2', { kind: 'send' }],
    ['a millionth more waits', '75.000001', '2', { kind: 'wait', reason: expect.stringContaining('it is 25.00 USD') }],
    ['a rate that is none is none', '1.00', 'much', { kind: 'wait', reason: expect.stringContaining('not known') }],
  ])('counts the window of this very address, at the rate that Redis has: %s', (_, spent, rate, verdict) => {
    const explanation = explainWith(spent, rate);
    expect(verdictOf(explanation, 'wallet')).toMatchObject(verdict);
    expect(explanation.unknown.join()).toContain('since the worker published it at 2026-11-21 19:59:55 UTC');
  });
});
