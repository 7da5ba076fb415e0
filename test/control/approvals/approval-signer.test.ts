import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signAct, type ActSigner } from '../../../src/control/approvals/act-signer.js';
import { parseAct, verifyAct } from '../../../src/control/approvals/act.js';
import {
  APPROVAL_LIFETIME_MS,
  type ApprovedPayout,
  countApprovals,
  formatApproval,
  makeApproval,
  signApproval,
} from '../../../src/control/approvals/approval.js';
import { signedApprovalSchema, type SignedApproval } from '../../../src/ledger/control-record.js';
import { openActSigner, openApprovalSigner } from '../../../src/control/keys/open-act-signer.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { keyringOf, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.now();
const PLATFORM = 4242;
const CONTENT = { payoutId: 'p', intent: 'f'.repeat(64), decision: 'approve' } as const;
const PAYOUT: ApprovedPayout = {
  ...{ platformId: PLATFORM, payoutId: 'p', intent: CONTENT.intent },
  ...{ signedBy: 'Shop', requestedBy: undefined },
};

let keys: TestKeys;
let ann: KeyEntry;
let bob: KeyEntry;
let annFile: string;
let bobFile: string;

beforeAll(async () => {
  keys = await openTestKeys();
  const [pem, ssh] = [await keys.makeKey('ann'), await keys.makeSshKey('bob')];
  [annFile, bobFile] = [pem.file, ssh.file];
  ann = { name: 'ann', role: 'approver', person: 'Ann', public: pem.public };
  bob = { name: 'bob', role: 'approver', person: 'Bob', public: ssh.public };
});

afterAll(async () => keys.close());

const approver = (file: { readonly keyFile?: string; readonly sshKeyFile?: string }): ActSigner =>
  openApprovalSigner({ audience: TEST_AUDIENCE, ...file, keyring: keyringOf(ann, bob) });

const sign = async (signer: ActSigner): Promise<SignedApproval> =>
  signApproval(signer, PLATFORM, makeApproval(CONTENT, signer, NOW, APPROVAL_LIFETIME_MS));

function count(approval: SignedApproval, entries = [ann, bob]) {
  const options = { keyring: keyringOf(...entries), lifetimeMs: APPROVAL_LIFETIME_MS, now: NOW + 1 };
  return countApprovals(PAYOUT, [approval], options);
}

/** Signs with OpenSSH for any purpose. */
function sshSign(file: string, text: string, namespace: string): string {
  const { status, stdout, stderr } = spawnSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', file, '-n', namespace], {
    input: text,
  });
  if (status !== 0) throw new Error(String(stderr));
  return String(stdout);
}

describe('a signed approval', () => {
  it('counts for a day, signed with a key file or by OpenSSH', async () => {
    const [first, second] = [await sign(approver({ keyFile: annFile })), await sign(approver({ sshKeyFile: bobFile }))];
    expect([...count(first).approvedBy, ...count(second).approvedBy]).toEqual(['ann', 'bob']);
    expect(Date.parse(first.expiresAt) - Date.parse(first.at)).toBe(24 * 3_600_000);
    expect([first, second].map((approval) => signedApprovalSchema.safeParse(approval).success)).toEqual([true, true]);
  });

  it('does not count where OpenSSH signed it for another purpose', () => {
    const approval = makeApproval(CONTENT, { name: 'bob', audience: TEST_AUDIENCE }, NOW, APPROVAL_LIFETIME_MS);
    const text = formatApproval(PLATFORM, approval);
    const signed = (namespace: string) => ({ ...approval, signature: sshSign(bobFile, text, namespace) });
    expect(count(signed('approval.payout-queue')).approvedBy).toEqual(new Set(['bob']));
    for (const namespace of ['file', 'git', 'act.payout-queue', 'approval.payout-queue2']) {
      expect(count(signed(namespace))).toMatchObject({ approvedBy: new Set(), refused: [{ by: 'bob' }] });
    }
  });

  it.each(['key file', 'OpenSSH'])('is never an act, nor an act an approval, of the same key: %s', async (way) => {
    const [entry, file] = way === 'OpenSSH' ? [bob, { sshKeyFile: bobFile }] : [ann, { keyFile: annFile }];
    const asOperator: KeyEntry = { ...entry, role: 'operator' };
    const operator = openActSigner({ audience: TEST_AUDIENCE, ...file, keyring: keyringOf(asOperator) });
    const content = { act: 'resend', payoutId: 'p', intent: CONTENT.intent, attempt: 1, reason: 'ticket 812' } as const;
    const act = parseAct(await signAct(operator, PLATFORM, content, NOW));
    if (act === undefined) throw new Error('the act cannot be read');
    const { by, at, expiresAt, signature } = act;
    // The same lines as far as both have them, and the signature of the other.
    expect(count({ ...CONTENT, by, at, expiresAt, signature }).approvedBy).toEqual(new Set());
    const approval = await sign(approver(file));
    const forged = { ...act, at: approval.at, expiresAt: approval.expiresAt, signature: approval.signature };
    expect(verifyAct(PLATFORM, act, content, keyringOf(asOperator), NOW).kind).toBe('verified');
    expect(verifyAct(PLATFORM, forged, content, keyringOf(asOperator), NOW).kind).toBe('refused');
  });
});

describe('the key of an approver', () => {
  it('is refused where the keyring has it in another role', () => {
    const open = (): ActSigner =>
      openApprovalSigner({
        audience: TEST_AUDIENCE,
        keyFile: annFile,
        keyring: keyringOf({ ...ann, role: 'operator' }),
      });
    expect(open).toThrow(/"ann" has the role operator\. An approval is signed by a key with the role approver/);
    const act = (): ActSigner => openActSigner({ audience: TEST_AUDIENCE, keyFile: annFile, keyring: keyringOf(ann) });
    expect(act).toThrow(/"ann" has the role approver\. An act is signed by a key with the role operator/);
  });
});
