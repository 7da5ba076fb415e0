import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { time, type Target } from '../support/attack.js';
import { signAct, signApproval, type KeyName } from '../support/signers.js';

/** What should be a signed approval. */
type ApprovalBody = SignedApproval | Readonly<Record<string, unknown>>;
type MakeApproval = (target: Target) => Promise<ApprovalBody>;

/** A payout that two people have to approve, and that ann has approved: the attacker adds what is missing. */
export interface ApprovalAttack {
  readonly name: string;
  readonly attack: (target: Target) => Promise<unknown>;
  /** The approval that he brings, where it is one; also for the dashboard, which has no other way in. */
  readonly make?: MakeApproval;
  /** Who asked for the payout, by its intent. */
  readonly requestedBy?: string | undefined;
  /** The keyring does not know who asked for it; @defaultValue it is held until another person has approved it */
  readonly isOfStranger?: boolean;
}

type Change = Partial<Parameters<typeof signApproval>[1]>;

/** Puts an approval where the ledger has them, and has the worker look. */
export async function putApproval({ account, payoutId }: Target, approval: ApprovalBody, by?: string): Promise<void> {
  await account.set(payoutId, { [`approval:${by ?? String(approval.by)}`]: JSON.stringify(approval) });
  await account.recheck(payoutId);
}

/** As a person would approve it. */
export async function approve({ account, payoutId }: Target, key: KeyName, change: Change = {}) {
  return signApproval(account.platformId, { payoutId, intent: await account.intentHash(payoutId), key, ...change });
}

const bringing = (name: string, make: MakeApproval, requestedBy?: string): ApprovalAttack => ({
  ...{ name, make, requestedBy, attack: async (target) => putApproval(target, await make(target)) },
});

/** An approval that someone signed so, and what is altered in it then. */
const signedBy = (key: KeyName, change: Change = {}, altered: object = {}): ApprovalAttack =>
  bringing(`an approval of ${[key, change, altered].map((part) => JSON.stringify(part)).join()}`, async (target) => ({
    ...{ ...(await approve(target, key, change)), ...altered },
  }));

const requested = (name: string, requestedBy: string, isOfStranger = false): ApprovalAttack => ({
  ...bringing(`an approval of who requested the payout${name}`, async (target) => approve(target, 'bob'), requestedBy),
  isOfStranger,
});

/** It is ann's word once more: the dashboard keeps it, and nobody counts it twice. */
const SECOND_KEY = signedBy('ann-2');

export const APPROVALS: readonly ApprovalAttack[] = [
  SECOND_KEY,
  ...(['foreign', 'shop-2', 'olga', 'gone'] as const).map((key) => signedBy(key)),
  signedBy('foreign', { by: 'bob' }),
  signedBy('ann', {}, { by: 'bob' }),
  signedBy('bob', { days: [-2, -1] }),
  signedBy('bob', { days: [1, 1.5] }),
  signedBy('bob', { days: [0, 30] }),
  signedBy('bob', { intent: '0'.repeat(64) }),
  signedBy('bob', { payoutId: 'P-other' }),
  signedBy('bob', { audience: 'staging' }),
  signedBy('bob', { audience: 'staging' }, { audience: TEST_AUDIENCE }),
  signedBy('bob', { audience: undefined }),
  signedBy('bob', { decision: 'reject' }, { decision: 'approve' }),
  {
    name: 'an approval of ann once more, under the name of bob',
    attack: async (target) => putApproval(target, await approve(target, 'ann'), 'bob'),
  },
  bringing('an approval of another payout, with this one named', async (target) => ({
    ...{ ...(await approve(target, 'bob', { payoutId: 'P-other' })), payoutId: target.payoutId },
  })),
  bringing('an approval for another account', async ({ account, payoutId }) =>
    signApproval(account.platformId + 1, { payoutId, intent: await account.intentHash(payoutId), key: 'bob' }),
  ),
  bringing("bob's signature of an act as an approval's", async (target) => {
    const act = JSON.parse(signAct(target.account.platformId, { act: 'resume', key: 'bob' })) as { signature: string };
    return { ...(await approve(target, 'bob')), signature: act.signature };
  }),
  requested('', 'bob'),
  requested(', in capitals', 'BOB'),
  requested(', with a zero-width space', 'bob\u200b', true),
  requested(', with a Cyrillic letter', 'b\u043eb', true),
  requested(', whom the keyring does not know', 'robert', true),
  bringing('an approval that is no JSON of one', async () => Promise.resolve({ by: 'bob', decision: 'approve' })),
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
    name: 'the rejection removed from the record',
    attack: async ({ account, payoutId }) => {
      await account.unset(payoutId, 'approval:ann-2');
      await account.recheck(payoutId);
    },
  },
  {
    name: 'the rejection removed, and the payout set back to queued without a hold',
    attack: async ({ account, payoutId }) => {
      await account.unset(payoutId, 'approval:ann-2', 'decisions');
      await account.revive(payoutId);
    },
  },
  bringing('the rejection replaced by an earlier approval of that key', async (target) => approve(target, 'ann-2')),
];

/** A request without the password, which the test adds. */
export interface Posted {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What someone sends to the dashboard's one write, who has its password or makes a browser send it. */
export interface PostedAttack {
  readonly name: string;
  /** What the dashboard responds: one of these. */
  readonly status: readonly number[];
  readonly request: (target: Target) => Promise<Posted>;
  readonly requestedBy?: string | undefined;
}

export const JSON_TYPE = { 'content-type': 'application/json' };

/** What an attacker puts into Redis, brought to the dashboard instead; where the payout itself is held, it is sound. */
const BROUGHT = APPROVALS.flatMap((attack): PostedAttack[] => {
  const { name, requestedBy, make, isOfStranger = false } = attack;
  if (make === undefined || isOfStranger) return [];
  const status = attack === SECOND_KEY ? [200] : [400, 403, 404];
  const request = async (target: Target) => ({ headers: JSON_TYPE, body: JSON.stringify(await make(target)) });
  return [{ name, requestedBy, status, request }];
});

/** An approval that would count: only the way in which it comes is wrong. */
const bobs = (name: string, status: number, change: (body: string) => Posted): PostedAttack => ({
  ...{ name: `bob's approval ${name}`, status: [status] },
  request: async (target) => {
    const body = JSON.stringify(await approve(target, 'bob'));
    return { headers: JSON_TYPE, body, ...change(body) };
  },
});
const withHeaders = (name: string, status: number, headers: Readonly<Record<string, string>>): PostedAttack =>
  bobs(name, status, () => ({ headers: { ...JSON_TYPE, ...headers } }));
const nothing = (name: string, body: Posted): PostedAttack => ({
  ...{ name, status: [400], request: async () => Promise.resolve({ headers: JSON_TYPE, ...body }) },
});

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
export const POSTED: readonly PostedAttack[] = [
  ...BROUGHT,
  nothing('no body', {}),
  nothing('a body that is no JSON', { body: '{' }),
  withHeaders('without the password', 401, { authorization: '' }),
  withHeaders('as text, which a form of another site can send', 415, { 'content-type': 'text/plain' }),
  bobs('as a form', 415, (body) => ({ body: `x=${encodeURIComponent(body)}`, headers: FORM })),
  withHeaders('from a page of another site (Origin)', 403, { origin: 'https://shop.example' }),
  withHeaders('from a page of another site (Sec-Fetch-Site)', 403, { 'sec-fetch-site': 'cross-site' }),
  bobs('in a megabyte', 413, (body) => ({ body: body.replace('{', `{"text":"${'x'.repeat(1_000_000)}",`) })),
  bobs('with an amount beside it', 400, (body) => ({ body: body.replace('{', '{"amount":"1",') })),
  bobs('by PUT', 405, () => ({ method: 'PUT' })),
  bobs('at the path of the payout', 405, () => ({ path: '/payouts/P' })),
];
