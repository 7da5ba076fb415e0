import { TEST_AUDIENCE } from '../../control/support/keys.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { time, type Target } from '../support/attack.js';
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

type Change = Partial<Parameters<typeof signApproval>[1]>;

/** Puts an approval where the ledger has them, and has the worker look. */
export async function putApproval({ account, payoutId }: Target, approval: ApprovalBody, by?: string): Promise<void> {
  await account.set(payoutId, { [`approval:${by ?? String(approval.by)}`]: JSON.stringify(approval) });
  await account.recheck(payoutId);
}

/** As a person would approve it. */
export async function approve(
  { account, payoutId }: Target,
  key: KeyName,
  change: Change = {},
): Promise<SignedApproval> {
  return signApproval(account.platformId, { payoutId, intent: await account.intentHash(payoutId), key, ...change });
}

function bringing(name: string, make: (target: Target) => Promise<ApprovalBody>): ApprovalAttack {
  return { name, make, attack: async (target) => putApproval(target, await make(target)) };
}

/** An approval that someone signed so, and what is altered in it then. */
const signedBy = (name: string, key: KeyName, change: Change = {}, altered: object = {}): ApprovalAttack =>
  bringing(name, async (target) => ({ ...(await approve(target, key, change)), ...altered }));

const requested = (name: string, requestedBy: string): ApprovalAttack => ({
  ...{ ...signedBy(name, 'bob'), input: { requestedBy } },
});

export const APPROVALS: readonly ApprovalAttack[] = [
  signedBy('an approval of a foreign key', 'foreign'),
  signedBy("a foreign key's approval in bob's name", 'foreign', { by: 'bob' }),
  signedBy('an approval of a second key of the same person', 'ann-2'),
  signedBy("ann's approval once more, as bob's", 'ann', {}, { by: 'bob' }),
  {
    name: "ann's approval once more, under the name of bob",
    attack: async (target) => putApproval(target, await approve(target, 'ann'), 'bob'),
  },
  signedBy("an approval of a producer's key", 'shop-2'),
  signedBy("an approval of an operator's key", 'olga'),
  signedBy('an approval of a revoked key', 'gone'),
  signedBy('an approval that has expired', 'bob', { at: time(-2 * DAY_MS), expiresAt: time(-DAY_MS) }),
  signedBy('an approval of the future', 'bob', { at: time(DAY_MS), expiresAt: time(1.5 * DAY_MS) }),
  signedBy('an approval for longer than the policy lets one hold', 'bob', { expiresAt: time(30 * DAY_MS) }),
  signedBy('an approval of another intent', 'bob', { intent: '0'.repeat(64) }),
  signedBy('an approval of another payout', 'bob', { payoutId: 'P-other' }),
  bringing('an approval of another payout, with this one named', async (target) => ({
    ...{ ...(await approve(target, 'bob', { payoutId: 'P-other' })), payoutId: target.payoutId },
  })),
  signedBy('an approval for another environment', 'bob', { audience: 'staging' }),
  signedBy(
    'an approval for another environment, with this one named',
    'bob',
    { audience: 'staging' },
    { audience: TEST_AUDIENCE },
  ),
  signedBy('an approval for no environment, as of an earlier version', 'bob', { audience: undefined }),
  bringing('an approval for another account', async ({ account, payoutId }) =>
    signApproval(account.platformId + 1, { payoutId, intent: await account.intentHash(payoutId), key: 'bob' }),
  ),
  signedBy("bob's rejection, turned into an approval", 'bob', { decision: 'reject' }, { decision: 'approve' }),
  bringing("bob's signature of an act as an approval's", async (target) => {
    const act = JSON.parse(signAct(target.account.platformId, { act: 'resume', key: 'bob' })) as { signature: string };
    return { ...(await approve(target, 'bob')), signature: act.signature };
  }),
  requested('an approval of the person who requested the payout', 'bob'),
  requested('an approval of who requested it, in capitals', 'BOB'),
  ...(
    [
      ['with a zero-width space', 'bob\u200b'],
      ['with a Cyrillic letter', 'b\u043eb'],
      ['whom the keyring does not know', 'robert'],
    ] as const
  ).map(([name, requestedBy]) => ({
    ...requested(`an approval of who requested it, ${name}`, requestedBy),
    held: 'as of nobody that the keyring knows' as const,
  })),
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
export const REJECTIONS: readonly Pick<ApprovalAttack, 'name' | 'attack'>[] = [
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
  {
    name: 'the rejection replaced by an approval of the same key, signed before',
    attack: async (target) => putApproval(target, await approve(target, 'ann-2')),
  },
];

/** What someone sends to the dashboard's one write, who has its password or makes a browser send it. */
export interface PostedAttack {
  readonly name: string;
  readonly input?: Partial<PayoutInput>;
  /** What the dashboard responds: one of these. */
  readonly status: readonly number[];
  request(target: Target): Promise<Posted>;
}

/** A request without the password, which the test adds. */
export interface Posted {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export const JSON_TYPE = { 'content-type': 'application/json' };
/** It is ann's word once more: the dashboard keeps it, and nobody counts it twice. */
const SAME_PERSON = 'an approval of a second key of the same person';

/** What an attacker puts into Redis, brought to the dashboard instead. */
const BROUGHT = APPROVALS.flatMap(({ name, input, make, held }): PostedAttack[] => {
  // Where the payout itself is held, the approval is sound.
  if (make === undefined || held !== undefined) return [];
  const status = name === SAME_PERSON ? [200] : [400, 403, 404];
  const request = async (target: Target) => ({ headers: JSON_TYPE, body: JSON.stringify(await make(target)) });
  return [{ name, ...(input && { input }), status, request }];
});

/** Of an approval that would count: only the way in which it comes is wrong. */
function withBobs(name: string, status: number, change: Posted | ((body: string) => string)): PostedAttack {
  return {
    ...{ name: `bob's approval${name}`, status: [status] },
    request: async (target) => {
      const body = JSON.stringify(await approve(target, 'bob'));
      return { headers: JSON_TYPE, ...(typeof change === 'function' ? { body: change(body) } : { body, ...change }) };
    },
  };
}
const posted = (name: string, body: Posted): PostedAttack => ({
  ...{ name, status: [400], request: async () => Promise.resolve({ headers: JSON_TYPE, ...body }) },
});

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
export const POSTED: readonly PostedAttack[] = [
  ...BROUGHT,
  posted('no body', {}),
  posted('a body that is no JSON', { body: '{' }),
  withBobs(', without the password', 401, { headers: { ...JSON_TYPE, authorization: '' } }),
  withBobs(', as text, which a form of another site can send', 415, { headers: { 'content-type': 'text/plain' } }),
  {
    ...{ name: "bob's approval, as a form", status: [415] },
    request: async (target) => {
      const body = `x=${encodeURIComponent(JSON.stringify(await approve(target, 'bob')))}`;
      return { body, headers: FORM };
    },
  },
  withBobs(', from a page of another site (Origin)', 403, {
    headers: { ...JSON_TYPE, origin: 'https://shop.example' },
  }),
  withBobs(', from a page of another site (Sec-Fetch-Site)', 403, {
    headers: { ...JSON_TYPE, 'sec-fetch-site': 'cross-site' },
  }),
  withBobs(' in a megabyte', 413, (body) => body.replace('{', `{"text":"${'x'.repeat(1_000_000)}",`)),
  withBobs(' with an amount beside it', 400, (body) => body.replace('{', '{"amount":"1",')),
  withBobs(' by PUT', 405, { method: 'PUT' }),
  withBobs(' at the path of the payout', 405, { path: '/payouts/P' }),
];
