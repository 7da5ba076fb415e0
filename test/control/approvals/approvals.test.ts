import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signAct, type ActSigner } from '../../../src/control/approvals/act-signer.js';
import { parseAct, verifyAct } from '../../../src/control/approvals/act.js';
import {
  APPROVAL_LIFETIME_MS,
  type ApprovalCount,
  type ApprovedPayout,
  countApprovals,
  formatApproval,
  makeApproval,
  signApproval as signWith,
} from '../../../src/control/approvals/approval.js';
import { openActSigner, openApprovalSigner } from '../../../src/control/keys/open-act-signer.js';
import { signedApprovalSchema, type Approval, type SignedApproval } from '../../../src/ledger/control-record.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { keyringOf, TEST_AUDIENCE, type KeyEntry } from '../support/keys.js';
import { DAY_MS, entryOf, iso, NOW, PLATFORM, signApproval } from '../support/signed.js';

const CONTENT = { payoutId: 'p', intent: 'ab'.repeat(32), decision: 'approve' } as const;
const PAYOUT: ApprovedPayout = { ...CONTENT, platformId: PLATFORM, signedBy: 'shop', requestedBy: 'Rita' };
const KEYS = ['shop', 'ann', 'ann-yubi', 'bob', 'rita', 'shop-boss'];
const ENTRIES = KEYS.map((name, index) =>
  entryOf(index, name, name === 'shop' ? 'producer' : 'approver', { person: name.replace(/-.*/, '') }),
);

function signed(by: string, change: Partial<Approval> = {}): SignedApproval {
  const times = { at: iso(NOW), expiresAt: iso(NOW + DAY_MS) };
  return signApproval(KEYS.indexOf(by), { audience: TEST_AUDIENCE, ...CONTENT, by, ...times, ...change });
}

function count(
  approvals: readonly SignedApproval[],
  payout: Partial<ApprovedPayout> = {},
  entries = ENTRIES,
): ApprovalCount {
  const rule = { keyring: keyringOf(...entries), lifetimeMs: DAY_MS, now: NOW + 1 };
  return countApprovals({ ...PAYOUT, ...payout }, approvals, rule);
}

describe('approvals of a payout', () => {
  it('count persons, not keys', () => {
    const { approvedBy, rejectedBy } = count([signed('ann'), signed('ann-yubi'), signed('bob'), signed('bob')]);
    expect([approvedBy, rejectedBy]).toEqual([new Set(['ann', 'bob']), undefined]);
  });

  it('are ended by one rejection, also by who approved before, or may not approve', () => {
    expect(count([signed('ann'), signed('ann', { decision: 'reject' }), signed('bob')]).rejectedBy).toBe('ann');
    expect(count([signed('rita', { decision: 'reject' })]).rejectedBy).toBe('rita');
  });

  it.each<[string, SignedApproval, RegExp]>([
    [
      'of who signed the payout, with another key',
      signed('shop-boss'),
      /shop asked for the payout, and cannot approve/,
    ],
    ['of who asked for it', signed('rita'), /rita asked for the payout/],
    ['in the name of another', { ...signed('ann'), by: 'bob' }, /signature of key "bob" is not over it/],
    ['of another payout', signed('ann', { payoutId: 'q' }), /about another payout/],
    ['of another intent', signed('ann', { intent: 'cd'.repeat(32) }), /the payout was signed again since/],
    ['that holds for longer than the policy lets it', signed('ann', { expiresAt: iso(NOW + DAY_MS + 1) }), /too long/],
  ])('do not count one %s', (_, approval, message) => {
    const { approvedBy, rejectedBy, refused } = count([approval]);
    expect({ approvedBy, rejectedBy }).toEqual({ approvedBy: new Set(), rejectedBy: undefined });
    expect(refused).toEqual([{ by: approval.by, message: expect.stringMatching(message) }]);
  });

  it.each([...['rita', 'RITA', 'rita.', 'r-ita', 'Rita\u200b', '\u202erita', 'R\u00edta', '\uff32ita', 'Ri\u3164ta']])(
    'do not count one of who asked for it, whom the intent spells %s',
    (requestedBy) => {
      const { approvedBy, refused } = count([signed('rita')], { requestedBy });
      expect([approvedBy.size, refused[0]?.message]).toEqual([0, expect.stringContaining('rita asked for the payout')]);
    },
  );

  it('are read from JSON of their own form only', () => {
    const isRead = (change: object): boolean =>
      signedApprovalSchema.safeParse(JSON.parse(JSON.stringify({ ...signed('ann'), ...change }))).success;
    expect([{}, { decision: 'maybe' }, { note: 'x' }, { at: 'now' }].map(isRead)).toEqual([true, false, false, false]);
  });

  it('have the text that every language makes', () => {
    const { signature, ...approval } = signed('ann');
    expect(signature).toHaveLength(86);
    const about = `audience=test\nplatformId=4242\npayoutId=p\nintent=${CONTENT.intent}\ndecision=approve\nby=ann`;
    expect(formatApproval(PLATFORM, approval)).toBe(
      `payout-queue approval v2\n${about}\nat=2026-11-21T20:00:00.000Z\nexpiresAt=2026-11-22T20:00:00.000Z\n`,
    );
  });
});

describe('signed with a key of their own', () => {
  type File = { readonly keyFile: string } | { readonly sshKeyFile: string };
  let keys: TestKeys;
  let ann: KeyEntry;
  let bob: KeyEntry;
  let files: Readonly<Record<'key file' | 'OpenSSH', File>>;
  let bobFile: string;

  beforeAll(async () => {
    keys = await openTestKeys();
    const [pem, ssh] = [await keys.makeKey('ann'), await keys.makeSshKey('bob')];
    files = { 'key file': { keyFile: pem.file }, OpenSSH: { sshKeyFile: ssh.file } };
    bobFile = ssh.file;
    ann = { name: 'ann', role: 'approver', person: 'Ann', public: pem.public };
    bob = { name: 'bob', role: 'approver', person: 'Bob', public: ssh.public };
  });
  afterAll(async () => keys.close());

  const open = (file: File, ...entries: KeyEntry[]): ActSigner =>
    openApprovalSigner({ audience: TEST_AUDIENCE, ...file, keyring: keyringOf(...entries) });
  const make = (by: Pick<ActSigner, 'name' | 'audience'>): Approval =>
    makeApproval(CONTENT, by, NOW, APPROVAL_LIFETIME_MS);
  const sign = async (signer: ActSigner): Promise<SignedApproval> => signWith(signer, PLATFORM, make(signer));
  const counted = (approval: SignedApproval): string[] => [...count([approval], {}, [ann, bob]).approvedBy];

  it('they count for a day, from a key file or by OpenSSH', async () => {
    const all = await Promise.all(Object.values(files).map(async (file) => sign(open(file, ann, bob))));
    expect(all.map(counted)).toEqual([['ann'], ['bob']]);
    for (const approval of all) {
      expect(Date.parse(approval.expiresAt) - Date.parse(approval.at)).toBe(DAY_MS);
      expect(signedApprovalSchema.safeParse(approval).success).toBe(true);
    }
  });

  it('they do not count where OpenSSH signed for another purpose', () => {
    const approval = make({ name: 'bob', audience: TEST_AUDIENCE });
    const signedFor = (namespace: string): SignedApproval => {
      const args = ['-q', '-Y', 'sign', '-f', bobFile, '-n', namespace];
      const { status, stdout } = spawnSync('ssh-keygen', args, { input: formatApproval(PLATFORM, approval) });
      expect(status).toBe(0);
      return { ...approval, signature: String(stdout) };
    };
    expect(counted(signedFor('approval.payout-queue'))).toEqual(['bob']);
    for (const purpose of ['file', 'act.payout-queue', 'approval.payout-queue2'])
      expect(counted(signedFor(purpose))).toEqual([]);
  });

  it.each(['key file', 'OpenSSH'] as const)('none is an act, and no act one, of the same key: %s', async (way) => {
    const entry = way === 'OpenSSH' ? bob : ann;
    const keyring = keyringOf({ ...entry, role: 'operator' });
    const operator = openActSigner({ audience: TEST_AUDIENCE, ...files[way], keyring });
    const content = { act: 'resend', payoutId: 'p', intent: CONTENT.intent, attempt: 1, reason: 'ticket 812' } as const;
    const act = parseAct(await signAct(operator, PLATFORM, content, NOW));
    if (act === undefined) throw new Error('the act cannot be read');
    // The same lines as far as both have them, and the signature of the other.
    const { by, at, expiresAt, signature } = act;
    expect(counted({ ...CONTENT, audience: TEST_AUDIENCE, by, at, expiresAt, signature })).toEqual([]);
    const approval = await sign(open(files[way], ann, bob));
    const forged = { ...act, expiresAt: approval.expiresAt, signature: approval.signature };
    expect(verifyAct(PLATFORM, act, content, keyring, NOW).kind).toBe('verified');
    expect(verifyAct(PLATFORM, forged, content, keyring, NOW).kind).toBe('refused');
  });

  it('a key of another role is refused', () => {
    const file = files['key file'];
    expect(() => open(file, { ...ann, role: 'operator' })).toThrow(
      /"ann" has the role operator\. An approval is signed by a key with the role approver/,
    );
    expect(() => openActSigner({ audience: TEST_AUDIENCE, ...file, keyring: keyringOf(ann) })).toThrow(
      /"ann" has the role approver\. An act is signed by a key with the role operator/,
    );
  });
});
