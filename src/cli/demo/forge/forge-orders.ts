import type { PayoutInput } from '../../../ledger/payout.js';

/** What the shop of this demo wants to be paid. Each attack has a payout of its own, so that the book tells them apart. */
export type Order = Pick<PayoutInput, 'payoutId' | 'paymentId' | 'amount' | 'addressTo' | 'notBefore'> & {
  readonly amount: string;
};

const PAYMENT_ID = 6;
const HOUR_MS = 3_600_000;

function order(number: number, amount: string): Order {
  return { payoutId: `invoice-${number}`, paymentId: PAYMENT_ID, amount, addressTo: `customer-${number}` };
}

export const ORDERS = {
  redirected: order(1, '12.5'),
  raised: order(2, '45'),
  copied: order(3, '20'),
  repeated: order(4, '30'),
  disowned: order(5, '60'),
  /** Far from being sent when the attacker says that it was. */
  pretended: { ...order(6, '75'), notBefore: new Date(Date.now() + HOUR_MS).toISOString() },
  /** The gateway answers it as for a blocked account, which pauses the account. */
  blocked: order(7, '10'),
  /** Waits behind the pause. */
  waiting: order(8, '25'),
} as const satisfies Readonly<Record<string, Order>>;

/** What the attacker puts into Redis. */
export const LOOT = {
  address: 'thief-1',
  raisedAmount: '45000',
  invented: { payoutId: 'invented-1', paymentId: PAYMENT_ID, amount: '777', addressTo: 'thief-2' },
  copyId: `${ORDERS.copied.payoutId}-copy`,
  txhash: 'made-up-by-the-attacker',
} as const;

/** The shop pays an order again that was rejected, under another payoutId. */
export function orderAgain(again: Order): Order {
  return { ...again, payoutId: `${again.payoutId}-again` };
}
