import { hashApproval, paymentOf } from '../../../src/control/approvals/approval.js';
import { approvalFieldName, type SignedApproval } from '../../../src/ledger/control-record.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { type Target, time } from '../support/attack.js';
import { type KeyName, signApproval } from '../support/forged-account.js';

type ApprovalBody = SignedApproval | Readonly<Record<string, unknown>>;
type MakeApproval = (target: Target) => Promise<ApprovalBody>;

/** A payout that two people have to approve, and that ann has approved: the attacker adds what is missing. */
interface ApprovalAttack {
  readonly name: string;
  readonly attack: (target: Target) => Promise<unknown>;
  /** The approval that he brings, where it is one; also for the dashboard (its form: test/dashboard/control.test.ts). */
  readonly make?: MakeApproval;
  readonly requestedBy?: string | undefined;
  /** The keyring does not know who asked for it; @defaultValue it is held until another person has approved it */
  readonly isOfStranger?: boolean;
}

type Change = Partial<Parameters<typeof signApproval>[1]>;

/** Puts an approval where the ledger has them, and has the worker look. */
export async function putApproval({ account, payoutId }: Target, approval: ApprovalBody) {
  const given = approval as SignedApproval;
  const hash = given.decision === 'approve' ? '' : hashApproval(account.platformId, given);
  await account.set(payoutId, { [approvalFieldName(given, hash)]: JSON.stringify(approval) });
  await account.recheck(payoutId);
}

export async function approve({ account, payoutId }: Target, key: KeyName, change: Change = {}) {
  const payment = (change.decision ?? 'approve') === 'approve' ? paymentOf(await account.payout(payoutId)) : {};
  const intent = await account.intentHash(payoutId);
  return signApproval(account.platformId, { payoutId, intent, key, ...payment, ...change });
}

const bringing = (name: string, make: MakeApproval, requestedBy?: string): ApprovalAttack => ({
  ...{ name, make, requestedBy, attack: async (target) => putApproval(target, await make(target)) },
});

const signedBy = (key: KeyName, change: Change = {}, altered: object = {}): ApprovalAttack =>
  bringing(`an approval of ${[key, change, altered].map((part) => JSON.stringify(part)).join()}`, async (target) => ({
    ...{ ...(await approve(target, key, change)), ...altered },
  }));

const requested = (name: string, requestedBy: string, isOfStranger = false): ApprovalAttack => ({
  ...bringing(`an approval of who requested the payout${name}`, async (target) => approve(target, 'bob'), requestedBy),
  isOfStranger,
});

/** It is ann's word once more: the dashboard keeps it, and nobody counts it twice. */
export const SECOND_KEY = signedBy('ann-2');

export const APPROVALS: readonly ApprovalAttack[] = [
  SECOND_KEY,
  ...(['foreign', 'shop-2', 'olga', 'gone'] as const).map((key) => signedBy(key)),
  signedBy('foreign', { by: 'bob' }),
  signedBy('ann', {}, { by: 'bob' }),
  signedBy('bob', { days: [-2, -1] }),
  signedBy('bob', { days: [0, 30] }),
  signedBy('bob', { intent: '0'.repeat(64) }),
  signedBy('bob', { payoutId: 'P-other' }),
  signedBy('bob', { addressTo: 'wallet-shown' }),
  signedBy('bob', { amount: '0.5' }),
  signedBy('bob', { audience: 'staging' }),
  signedBy('bob', { audience: 'staging' }, { audience: TEST_AUDIENCE }),
  signedBy('bob', { audience: '' }),
  signedBy('bob', { decision: 'reject' }, { decision: 'approve' }),
  bringing('an approval of another payout, with this one named', async (target) => ({
    ...{ ...(await approve(target, 'bob', { payoutId: 'P-other' })), payoutId: target.payoutId },
  })),
  bringing('an approval for another account', async ({ account, payoutId }) =>
    signApproval(account.platformId + 1, {
      ...{ payoutId, intent: await account.intentHash(payoutId), key: 'bob' },
      ...paymentOf(await account.payout(payoutId)),
    }),
  ),
  requested('', 'bob'),
  requested(', with a Cyrillic letter', 'b\u043eb', true),
  {
    name: 'the payout set back to queued without a hold',
    attack: async ({ account, payoutId }) => account.revive(payoutId),
  },
  {
    name: 'its hold says that it waits for a minute only',
    attack: async ({ account, payoutId }) => {
      const held = { kind: 'policy', reason: 'wait', message: 'soon', rule: 'four-eyes', until: time(60_000) };
      await account.set(payoutId, { held: JSON.stringify(held) });
      await account.recheck(payoutId);
    },
  },
];

/** On a payout that two people approved, and one of them then rejected with another key: a worker holds it for that. */
export const REJECTIONS: readonly ApprovalAttack[] = [
  {
    name: 'the rejection removed, and the payout set back to queued without a hold',
    attack: async ({ account, payoutId }) => {
      await account.unset(payoutId, ...(await rejectionsOf({ account, payoutId })), 'decisions');
      await account.revive(payoutId);
    },
  },
  bringing('an earlier approval of that key beside the rejection', async (target) => approve(target, 'ann-2')),
  bringing('taken back by another person', async (target) => unreject(target, 'bob')),
  bringing('taken back with a key that the keyring does not have', async (target) => unreject(target, 'foreign')),
  bringing('another rejection taken back by that person', async (target) =>
    approve(target, 'ann', { decision: 'unreject', intent: 'ab'.repeat(32) }),
  ),
];

async function rejectionsOf({ account, payoutId }: Pick<Target, 'account' | 'payoutId'>): Promise<string[]> {
  const fields = await account.redis.hkeys(account.keys.payout(payoutId));
  return fields.filter((field) => field.startsWith('rejection:'));
}

async function unreject(target: Target, key: KeyName): Promise<SignedApproval> {
  const [field = ''] = await rejectionsOf(target);
  return approve(target, key, { decision: 'unreject', intent: field.slice('rejection:'.length) });
}

/** What an attacker puts into Redis, brought to the dashboard instead; where the payout itself is held, it is sound. */
export const POSTED = APPROVALS.filter(({ make, isOfStranger = false }) => make !== undefined && !isOfStranger);
