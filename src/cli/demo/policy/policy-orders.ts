import type { PayoutInput } from '../../../ledger/payout.js';
import type { DemoApprover } from '../demo-keys.js';
import { SHOP_PERSON } from '../demo-keys.js';

/** What the demo's policy lets leave. Its currency is pinned to a dollar, so that amounts and dollars are the same. */
export function writePolicy(platformId: number): string {
  return `version: 1
platformId: '${platformId}'
default: hold
usd: { pinned: { '${PAYMENT_ID}': '1' } }
groups: { finance: [Alice, Bob, "${SHOP_PERSON}"] }
rules:
  - { name: never-more, cap: { usd: '20000' }, over: refuse }
  - { name: four-eyes, cap: { usd: '1000' }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: two-each-10s, cap: { count: '${PER_WINDOW}', within: ${WINDOW_MS / 1_000}s, per: address }, over: wait }
  - { name: known-thieves, when: { addressIn: ${DENY_LIST} }, over: refuse }
`;
}

const PAYMENT_ID = 6;

/** How many payouts an address may get in a window. */
export const PER_WINDOW = 2;
export const WINDOW_MS = 10_000;
export const DENY_LIST = 'deny.txt';

/** A payment of the shop, signed with its key. */
export type PolicyOrder = Pick<PayoutInput, 'payoutId' | 'paymentId' | 'addressTo'> & { readonly amount: string };

function order(payoutId: string, amount: string, addressTo: string): PolicyOrder {
  return { payoutId, paymentId: PAYMENT_ID, amount, addressTo };
}

/** What the shop itself orders. */
export const ORDERS = {
  small: [order('order-1', '12.5', 'customer-1'), order('order-2', '45', 'customer-2')],
  /** All to one address: one more than a window has room for. */
  often: ['a', 'b', 'c'].map((each) => order(`order-3${each}`, '10', 'customer-3')),
  large: order('supplier-1', '2500', 'supplier-1'),
  doubtful: order('supplier-2', '1800', 'supplier-2'),
} as const;

export const THIEF_ADDRESS = 'thief-1';

/** What somebody orders who has stolen the shop's signing key: its signature is right. */
export const THEFTS = {
  /** Each below what persons have to approve. */
  small: ['a', 'b', 'c', 'd'].map((each) => order(`stolen-1${each}`, '900', THIEF_ADDRESS)),
  everything: order('stolen-2', '50000', THIEF_ADDRESS),
} as const;

export const [ALICE, BOB, OWN_KEY] = [
  { name: 'alice', person: 'Alice' },
  { name: 'bob', person: 'Bob' },
  // A second key of the person who signs for the shop.
  { name: 'shop-2', person: SHOP_PERSON },
] as const satisfies readonly DemoApprover[];
