import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signAct, type ActContent } from '../../../src/control/approvals/act-signer.js';
import { hashAct, parseAct, serializeAct, verifyAct, type SignedAct } from '../../../src/control/approvals/act.js';
import { APPROVAL_LIFETIME_MS, countApprovals } from '../../../src/control/approvals/approval.js';
import { makeApproval, signApproval as signWith } from '../../../src/control/approvals/approval.js';
import { openActSigner, openApprovalSigner } from '../../../src/control/keys/open-act-signer.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import type { Approval, SignedApproval } from '../../../src/ledger/control-record.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { keyringOf, testKey, TEST_AUDIENCE, type KeyEntry } from '../support/keys.js';
import { DAY_MS, entryOf, iso, NOW, PLATFORM, signApproval } from '../support/signed.js';

const INTENT = 'ab'.repeat(32);
const CONTENT = { payoutId: 'p', intent: INTENT, decision: 'approve' } as const;
const WANTED = { act: 'resend', payoutId: 'p', intent: INTENT, attempt: 1 } as const;
const ACT: ActContent = { ...WANTED, reason: 'ticket 813' };

const KEYS = ['shop', 'ann', 'ann-yubi', 'bob', 'rita', 'shop-boss'];
const ENTRIES = KEYS.map((name, index) =>
  entryOf(index, name, name === 'shop' ? 'producer' : 'approver', { person: name.replace(/-.*/, '') }),
);

function signed(by: string, change: Partial<Approval> = {}): SignedApproval {
  const times = { at: iso(NOW), expiresAt: iso(NOW + DAY_MS) };
  return signApproval(KEYS.indexOf(by), { audience: TEST_AUDIENCE, ...CONTENT, by, ...times, ...change });
}

function count(approvals: readonly SignedApproval[], requestedBy = 'Rita', entries = ENTRIES) {
  const payout = { ...CONTENT, platformId: PLATFORM, signedBy: 'shop', requestedBy };
  return countApprovals(payout, approvals, { keyring: keyringOf(...entries), lifetimeMs: DAY_MS, now: NOW + 1 });
}

describe('approvals of a payout', () => {
  it('count persons, not keys, and are ended by one rejection, of anyone', () => {
    const { approvedBy, rejectedBy } = count([signed('ann'), signed('ann-yubi'), signed('bob')]);
    expect([approvedBy, rejectedBy]).toEqual([new Set(['ann', 'bob']), undefined]);
    expect(count([signed('ann'), signed('ann', { decision: 'reject' }), signed('bob')]).rejectedBy).toBe('ann');
    expect(count([signed('rita', { decision: 'reject' })]).rejectedBy).toBe('rita');
  });

  it.each<[string, SignedApproval, RegExp]>([
    ['of who signed the payout, with another key', signed('shop-boss'), /shop asked for the payout, and cannot/],
    ['of another intent', signed('ann', { intent: 'cd'.repeat(32) }), /the payout was signed again since/],
    ['of two lines', { ...signed('ann'), payoutId: 'p\nintent=' }, /^payoutId: must not contain control characters/],
    ['that holds for longer than the policy lets it', signed('ann', { expiresAt: iso(NOW + DAY_MS + 1) }), /too long/],
  ])('do not count one %s', (_, approval, message) => {
    const refused = [{ by: approval.by, message: expect.stringMatching(message) }];
    expect(count([approval])).toMatchObject({ approvedBy: new Set(), rejectedBy: undefined, refused });
  });

  it.each(['RITA', 'r-ita', 'Rita\u200b', '\u202erita', 'R\u00edta', '\uff32ita'])(
    'do not count one of who asked for it, whom the intent spells %s',
    (spelling) => {
      expect(count([signed('rita')], spelling).approvedBy.size).toBe(0);
    },
  );
});

it('a signed act holds for seven days, counts for what it says, and is read from what was stored only', async () => {
  const keyring = keyringOf(entryOf(1, 'olga', 'operator'));
  const sign = async (text: string): Promise<string> => Promise.resolve(signText(text, testKey(1)));
  const stored = await signAct({ name: 'olga', audience: TEST_AUDIENCE, sign }, PLATFORM, ACT, NOW);
  const act = parseAct(stored) as SignedAct;
  const { signature, ...content } = act;
  const times = { at: iso(NOW), expiresAt: iso(NOW + 7 * DAY_MS) };
  expect(content).toEqual({ ...ACT, audience: TEST_AUDIENCE, by: 'olga', ...times });
  const verify = (given: SignedAct, wanted: object) =>
    verifyAct(PLATFORM, given, wanted as typeof WANTED, keyring, NOW);
  const actHash = hashAct(PLATFORM, content);
  expect(verify({ ...content, signature }, WANTED)).toEqual({ kind: 'verified', person: 'olga', actHash });
  for (const other of [{ act: 'resume' }, { payoutId: 'b' }, { intent: '' }, { attempt: 2 }, { attempt: undefined }]) {
    const message = expect.stringContaining(`it names another ${Object.keys(other).join()} (`);
    expect(verify(act, { ...WANTED, ...other })).toEqual({ kind: 'refused', message });
  }
  for (const change of [{ payoutId: 'a\nb' }, { attempt: undefined }])
    expect(verify({ ...act, ...change }, WANTED).kind).toBe('refused');
  expect(parseAct(serializeAct(act))).toEqual(act);
  for (const text of ['{', stored.replace('resend', 'pay'), stored.replace('"attempt":1', '"attempt":0')])
    expect(parseAct(text)).toBeUndefined();
  const signing = signAct(
    { name: 'olga', audience: TEST_AUDIENCE, sign },
    PLATFORM,
    { ...ACT, reason: 'a\u2028b' },
    NOW,
  );
  await expect(signing).rejects.toThrow(/^reason: must not contain control characters/);
});

describe('signed with a key of their own', () => {
  let keys: TestKeys;
  let [ann, bob]: KeyEntry[] = [];
  let [pemFile, sshFile] = ['', ''];

  beforeAll(async () => {
    keys = await openTestKeys();
    const [pem, ssh] = [await keys.makeKey('ann'), await keys.makeSshKey('bob')];
    [pemFile, sshFile] = [pem.file, ssh.file];
    ann = { name: 'ann', role: 'approver', person: 'Ann', public: pem.public };
    bob = { name: 'bob', role: 'approver', person: 'Bob', public: ssh.public };
  });
  afterAll(async () => keys.close());

  const counted = (approval: SignedApproval): string[] => [
    ...count(
      [approval],
      '',
      [ann, bob].filter((entry) => entry !== undefined),
    ).approvedBy,
  ];

  it.each(['ann', 'bob'])('they count for a day, and none is an act, or the reverse: %s', async (name) => {
    const entry = (name === 'ann' ? ann : bob) as KeyEntry;
    const options = { audience: TEST_AUDIENCE, ...(name === 'ann' ? { keyFile: pemFile } : { sshKeyFile: sshFile }) };
    const [approvers, operators] = [keyringOf(entry), keyringOf({ ...entry, role: 'operator' })];
    const signer = openApprovalSigner({ ...options, keyring: approvers });
    const approval = await signWith(signer, PLATFORM, makeApproval(CONTENT, signer, NOW, APPROVAL_LIFETIME_MS));
    expect(counted(approval)).toEqual([name]);
    expect(Date.parse(approval.expiresAt) - Date.parse(approval.at)).toBe(DAY_MS);

    const operator = openActSigner({ ...options, keyring: operators });
    const act = parseAct(await signAct(operator, PLATFORM, ACT, NOW)) as SignedAct;
    // The same lines as far as both have them, and the signature of the other.
    const { by, at, expiresAt, signature } = act;
    expect(counted({ ...CONTENT, audience: TEST_AUDIENCE, by, at, expiresAt, signature })).toEqual([]);
    const forged = { ...act, expiresAt: approval.expiresAt, signature: approval.signature };
    const verdicts = [act, forged].map((each) => verifyAct(PLATFORM, each, WANTED, operators, NOW).kind);
    expect(verdicts).toEqual(['verified', 'refused']);
    // Each role signs its own.
    expect(() => openApprovalSigner({ ...options, keyring: operators })).toThrow(
      /An approval is signed by .* approver/,
    );
    expect(() => openActSigner({ ...options, keyring: approvers })).toThrow(/An act is signed by .* operator/);
  });
});
