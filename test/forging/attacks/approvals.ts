import { TEST_AUDIENCE } from '../../control/support/keys.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { Target } from '../support/attack.js';
import { DAY_MS, signAct, signApproval, type KeyName } from '../support/signers.js';

/** A payout that two people have to approve, and that ann has approved: the attacker adds what is missing. */
export interface ApprovalAttack {
  readonly name: string;
  readonly input?: Partial<PayoutInput>;
  /** @defaultValue held until another person has approved it */
  readonly held?: 'as of nobody that the keyring knows';
  attack(target: Target): Promise<unknown>;
  /** The approval that he brings, where it is one; also for the dashboard, which has no other way in. */
  readonly make?: (target: Target) => Promise<ApprovalBody>;
}

/** What should be a signed approval. */
export type ApprovalBody = SignedApproval | Readonly<Record<string, unknown>>;

type Approving = Parameters<typeof signApproval>[1];

/** Puts an approval where the ledger has them, and has the worker look. */
export async function putApproval(
  { account, payoutId }: Target,
  approval: ApprovalBody,
  by = String(approval['by' as keyof typeof approval]),
): Promise<void> {
  await account.set(payoutId, { [`approval:${by}`]: JSON.stringify(approval) });
  await account.redis.sadd(account.keys.recheck, payoutId);
}

/** As a person would approve it. */
export async function approve(target: Target, key: KeyName, change: Partial<Approving> = {}): Promise<SignedApproval> {
  const { account, payoutId } = target;
  return signApproval(account.platformId, { payoutId, intent: await account.intentHash(payoutId), key, ...change });
}

function withApproval(name: string, make: (target: Target) => Promise<ApprovalBody>): ApprovalAttack {
  return { name, make, attack: async (target) => putApproval(target, await make(target)) };
}

const time = (offsetMs: number): string => new Date(Date.now() + offsetMs).toISOString();

export const APPROVALS: readonly ApprovalAttack[] = [
  withApproval('an approval of a foreign key', async (target) => approve(target, 'foreign')),
  withApproval("a foreign key's approval in bob's name", async (target) => approve(target, 'foreign', { by: 'bob' })),
  withApproval('an approval of a second key of the same person', async (target) => approve(target, 'ann-2')),
  withApproval("ann's approval once more, as bob's", async (target) => ({
    ...(await approve(target, 'ann')),
    by: 'bob',
  })),
  {
    name: "ann's approval once more, under the name of bob",
    attack: async (target) => putApproval(target, await approve(target, 'ann'), 'bob'),
  },
  withApproval("an approval of a producer's key", async (target) => approve(target, 'shop-2')),
  withApproval("an approval of an operator's key", async (target) => approve(target, 'olga')),
  withApproval('an approval of a revoked key', async (target) => approve(target, 'gone')),
  withApproval('an approval that has expired', async (target) =>
    approve(target, 'bob', { at: time(-2 * DAY_MS), expiresAt: time(-DAY_MS) }),
  ),
  withApproval('an approval of the future', async (target) =>
    approve(target, 'bob', { at: time(DAY_MS), expiresAt: time(1.5 * DAY_MS) }),
  ),
  withApproval('an approval for longer than the policy lets one hold', async (target) =>
    approve(target, 'bob', { expiresAt: time(30 * DAY_MS) }),
  ),
  withApproval('an approval of another intent', async (target) => approve(target, 'bob', { intent: '0'.repeat(64) })),
  withApproval('an approval of another payout', async (target) => approve(target, 'bob', { payoutId: 'P-other' })),
  withApproval('an approval of another payout, with this one named', async (target) => ({
    ...(await approve(target, 'bob', { payoutId: 'P-other' })),
    payoutId: target.payoutId,
  })),
  withApproval('an approval for another environment', async (target) =>
    approve(target, 'bob', { audience: 'staging' }),
  ),
  withApproval('an approval for another environment, with this one named', async (target) => ({
    ...(await approve(target, 'bob', { audience: 'staging' })),
    audience: TEST_AUDIENCE,
  })),
  withApproval('an approval for no environment, as of an earlier version', async (target) =>
    approve(target, 'bob', { audience: undefined }),
  ),
  withApproval('an approval for another account', async (target) => {
    const { account, payoutId } = target;
    return signApproval(account.platformId + 1, { payoutId, intent: await account.intentHash(payoutId), key: 'bob' });
  }),
  withApproval("bob's rejection, turned into an approval", async (target) => ({
    ...(await approve(target, 'bob', { decision: 'reject' })),
    decision: 'approve',
  })),
  withApproval("bob's signature of an act as an approval's", async (target) => {
    const act = JSON.parse(signAct(target.account.platformId, { act: 'resume', key: 'bob' })) as { signature: string };
    return { ...(await approve(target, 'bob')), signature: act.signature };
  }),
  {
    ...withApproval('an approval of the person who requested the payout', async (target) => approve(target, 'bob')),
    input: { requestedBy: 'bob' },
  },
  {
    ...withApproval('an approval of who requested it, in capitals', async (target) => approve(target, 'bob')),
    input: { requestedBy: 'BOB' },
  },
  ...(
    [
      ['with a zero-width space', 'bob\u200b'],
      ['with a Cyrillic letter', 'b\u043eb'],
      ['whom the keyring does not know', 'robert'],
    ] as const
  ).map(([name, requestedBy]) => ({
    ...withApproval(`an approval of who requested it, ${name}`, async (target) => approve(target, 'bob')),
    ...{ input: { requestedBy }, held: 'as of nobody that the keyring knows' as const },
  })),
  withApproval('an approval that is no JSON of one', async () => Promise.resolve({ by: 'bob', decision: 'approve' })),
  {
    name: 'the payout set back to queued without a hold',
    attack: async ({ account, payoutId }) => account.revive(payoutId),
  },
  {
    name: 'its hold says that it waits for a minute only',
    attack: async ({ account, payoutId }) => {
      const held = { kind: 'policy', reason: 'wait', message: 'soon', rule: 'four-eyes', until: time(60_000) };
      await account.set(payoutId, { held: JSON.stringify(held) });
      await account.redis.sadd(account.keys.recheck, payoutId);
    },
  },
];

/** On a payout that two people approved, and one of them then rejected with another key: a worker holds it for that. */
export const REJECTIONS: readonly Pick<ApprovalAttack, 'name' | 'attack'>[] = [
  {
    name: 'the rejection removed from the record',
    attack: async ({ account, payoutId }) => {
      await account.unset(payoutId, 'approval:ann-2');
      await account.redis.sadd(account.keys.recheck, payoutId);
    },
  },
  {
    name: 'the rejection removed, and the payout set back to queued without a hold',
    attack: async ({ account, payoutId }) => {
      await account.unset(payoutId, 'approval:ann-2', 'decisions');
      await account.revive(payoutId);
    },
  },
  {
    name: 'the rejection replaced by an approval of the same key, signed before',
    attack: async (target) => putApproval(target, await approve(target, 'ann-2')),
  },
];
