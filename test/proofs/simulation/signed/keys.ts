import type { KeyObject } from 'node:crypto';
import { hashAct, serializeAct, type Act, type SignedAct, formatAct } from '../../../../src/control/approvals/act.js';
import { formatApproval } from '../../../../src/control/approvals/approval.js';
import { signText } from '../../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { ApprovalDecision, SignedApproval } from '../../../../src/ledger/control-record.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../../../control/support/keys.js';

export const PLATFORM_ID = 1;

export const KEYS = { shop: testKey(1), ann: testKey(2), thief: testKey(3) } as const satisfies Record<
  string,
  KeyObject
>;

export interface ApproverKey {
  readonly name: string;
  readonly person: string;
  readonly private: KeyObject;
}

export const APPROVER_KEYS: readonly ApproverKey[] = (
  [
    ['ann-1', 'Ann'],
    ['ann-2', 'Ann'],
    ['bob-1', 'Bob'],
    ['bob-2', 'Bob'],
    ['cy-1', 'Cy'],
    ['cy-2', 'Cy'],
    ['dee-1', 'Dee'],
    ['shop-1', 'Shop'],
    ['eve-1', 'Eve'],
  ] as const
).map(([name, person], number) => ({ name, person, private: testKey(10 + number) }));

export const KEYRING = keyringOf(
  keyEntry(KEYS.shop),
  keyEntry(KEYS.ann, { name: 'ann', role: 'operator', person: 'Ann' }),
  ...APPROVER_KEYS.map(({ name, person, private: key }) => keyEntry(key, { name, person, role: 'approver' })),
);

export function signAct(stated: Act, key: KeyObject): SignedAct {
  const act = { audience: TEST_AUDIENCE, ...stated };
  return { ...act, signature: signText(formatAct(PLATFORM_ID, act), key) };
}

export function storeAct(act: SignedAct): { readonly text: string; readonly hash: string } {
  return { text: serializeAct(act), hash: hashAct(PLATFORM_ID, act) };
}

export function intentHashOf(payout: Payout): string {
  if (payout.signed === undefined) throw new Error('it is not signed');
  return hashIntent(intentOf(PLATFORM_ID, payout, payout.signed));
}

/** What a person says of a payout. @param about - the record that the person was shown */
export function signApproval(
  key: ApproverKey,
  { payoutId }: Payout,
  about: Payout,
  decision: ApprovalDecision,
  [at, expiresAt]: readonly [at: number, expiresAt: number],
): SignedApproval {
  const times = { at: new Date(at).toISOString(), expiresAt: new Date(expiresAt).toISOString() };
  const intent = intentHashOf(about);
  const stated = { audience: TEST_AUDIENCE, payoutId, intent, decision, by: key.name, ...times };
  return { ...stated, signature: signText(formatApproval(PLATFORM_ID, stated), key.private) };
}
