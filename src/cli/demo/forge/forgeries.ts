import type { Payment } from '../../../sandbox/index.js';
import type { Attacker } from './attacker.js';
import { LOOT, ORDERS, type Order } from './forge-orders.js';
import type { ForgeView } from './forge-view.js';

/** What came of an attack in one account. */
export interface ForgeryOutcome {
  /** Whether the attacker got what he wanted; undefined where that cannot be said. */
  readonly succeeded: boolean | undefined;
  readonly what: string;
}

/** An attack with nothing but writes to Redis. */
export interface Forgery {
  readonly name: string;
  /** While payouts wait and no worker runs; once the others are paid; while the account is paused. */
  readonly when: 'queued' | 'paid' | 'paused';
  readonly forge: (attacker: Attacker) => Promise<void>;
  readonly judge: (view: ForgeView) => ForgeryOutcome;
}

/** What an attack that alters, invents or repeats a payment leads to: a payment in the book, or a payout that is held. */
function byBook(
  payoutId: string,
  findPayments: (payments: readonly Payment[]) => readonly Payment[],
  describe: (payment: Payment) => string,
): Forgery['judge'] {
  return ({ payments, payouts, tampered }) => {
    const [wrong] = findPayments(payments);
    if (wrong !== undefined) return { succeeded: true, what: describe(wrong) };
    const { state, held } = payouts.get(payoutId) ?? {};
    if (held === undefined) return { succeeded: undefined, what: `not paid, and not held: ${state ?? 'lost'}` };
    return { succeeded: false, what: `held: ${held.reason}${tampered.has(payoutId) ? ', event tampering' : ''}` };
  };
}

const to =
  (address: string) =>
  (payments: readonly Payment[]): readonly Payment[] =>
    payments.filter(({ addressTo }) => addressTo === address);

/** Payments to the recipient of an order that are more than one. */
const again =
  ({ addressTo }: Order) =>
  (payments: readonly Payment[]): readonly Payment[] =>
    to(addressTo)(payments).slice(1);

const toThief = ({ amount }: Payment): string => `${amount} paid to the thief`;
const paidTwice = ({ amount }: Payment): string => `${amount} paid twice`;

export const FORGERIES: readonly Forgery[] = [
  {
    name: 'address of a queued payout altered',
    when: 'queued',
    forge: async (attacker) => attacker.alter(ORDERS.redirected.payoutId, { addressTo: LOOT.address }),
    judge: byBook(ORDERS.redirected.payoutId, to(LOOT.address), toThief),
  },
  {
    name: 'amount of a queued payout altered',
    when: 'queued',
    forge: async (attacker) => attacker.alter(ORDERS.raised.payoutId, { amount: LOOT.raisedAmount }),
    judge: byBook(
      ORDERS.raised.payoutId,
      (payments) => to(ORDERS.raised.addressTo)(payments).filter(({ amount }) => amount !== ORDERS.raised.amount),
      ({ amount }) => `${amount} paid in place of ${ORDERS.raised.amount}`,
    ),
  },
  {
    name: 'payout invented',
    when: 'queued',
    forge: async (attacker) => {
      const { payoutId, paymentId, amount, addressTo } = LOOT.invented;
      await attacker.invent(payoutId, { paymentId: String(paymentId), amount, addressTo });
    },
    judge: byBook(LOOT.invented.payoutId, to(LOOT.invented.addressTo), toThief),
  },
  {
    name: 'payout copied under a new id',
    when: 'queued',
    forge: async (attacker) => attacker.copy(ORDERS.copied.payoutId, LOOT.copyId),
    judge: byBook(LOOT.copyId, again(ORDERS.copied), paidTwice),
  },
  {
    name: '`completed` set back to `queued`',
    when: 'paid',
    forge: async (attacker) => attacker.enqueue(ORDERS.repeated.payoutId),
    judge: byBook(ORDERS.repeated.payoutId, again(ORDERS.repeated), paidTwice),
  },
  {
    name: 'paid one shown as `rejected`',
    when: 'paid',
    forge: async (attacker) => attacker.showAs(ORDERS.disowned.payoutId, 'rejected'),
    judge: ({ payments, belief: { disowned } }) => {
      const [second] = again(ORDERS.disowned)(payments);
      if (second !== undefined) return { succeeded: true, what: `${second.amount} paid twice: the shop paid again` };
      const isAsked = disowned.state === 'rejected' && !disowned.isOrderedAgain;
      return isAsked
        ? { succeeded: false, what: 'no receipt: the shop asked the gateway, paid once' }
        : { succeeded: undefined, what: `shown as ${disowned.state}` };
    },
  },
  {
    name: 'never paid, shown as `completed`',
    when: 'paid',
    forge: async (attacker) => {
      await attacker.alter(ORDERS.pretended.payoutId, { txhash: LOOT.txhash });
      await attacker.showAs(ORDERS.pretended.payoutId, 'completed');
    },
    judge: ({ payments, belief: { pretended } }) => {
      if (pretended.state !== 'completed' || to(ORDERS.pretended.addressTo)(payments).length > 0) {
        return { succeeded: undefined, what: `shown as ${pretended.state}` };
      }
      return pretended.isBooked
        ? { succeeded: true, what: 'the shop booked it as paid' }
        : { succeeded: false, what: `verified: ${String(pretended.verified)}, the shop did not book it` };
    },
  },
  {
    name: "breaker's pause lifted",
    when: 'paused',
    forge: async (attacker) => attacker.liftPause(),
    judge: ({ payments, refusedResumes }) => {
      const [sent] = to(ORDERS.waiting.addressTo)(payments);
      if (sent !== undefined) return { succeeded: true, what: `${sent.amount} paid while it was to wait` };
      return refusedResumes > 0
        ? { succeeded: false, what: 'still paused: nobody signed the end of it' }
        : { succeeded: undefined, what: 'not paid, and the worker did not refuse it' };
    },
  },
];
