import type { Payout } from '../../../ledger/payout.js';
import { readEvents } from '../../../producer/events/payout-events.js';
import type { Payment } from '../../../sandbox/index.js';
import type { ForgeAccount } from './forge-account.js';
import { ORDERS, orderAgain } from './forge-orders.js';

/** What the shop makes of what Redis says of two of its orders. */
export interface ShopBelief {
  /** A paid one that the attacker shows as `rejected`. */
  readonly disowned: { readonly state: Payout['state']; readonly isOrderedAgain: boolean };
  /** One that was never paid and is shown as `completed`. */
  readonly pretended: {
    readonly state: Payout['state'];
    readonly verified: boolean | undefined;
    readonly isBooked: boolean;
  };
}

/** Everything by which an account is judged. */
export interface ForgeView {
  readonly payments: readonly Payment[];
  /** As Redis has them at the end. */
  readonly payouts: ReadonlyMap<string, Payout>;
  /** The payouts of which an event `tampering` told. */
  readonly tampered: ReadonlySet<string>;
  readonly refusedResumes: number;
  readonly belief: ShopBelief;
}

const ALL_EVENTS = 1_000;

/**
 * The shop looks at two orders, and acts. Without keys it has nothing but what Redis says. With keys it does as docs/control.md
 * tells: it books what a worker signed, and since nobody signs `rejected`, it asks the gateway before it pays again.
 */
export async function actAsShop({ shop, hasKeys, book }: ForgeAccount): Promise<ShopBelief> {
  const [disowned, pretended] = await Promise.all(
    [ORDERS.disowned, ORDERS.pretended].map(async ({ payoutId }) => shop.get(payoutId)),
  );
  if (disowned === undefined || pretended === undefined) throw new Error('An order of the shop was lost');
  const isKnownAsPaid = hasKeys && book().some(({ addressTo }) => addressTo === ORDERS.disowned.addressTo);
  const isOrderedAgain = disowned.state === 'rejected' && !isKnownAsPaid;
  if (isOrderedAgain) await shop.enqueue(orderAgain(ORDERS.disowned));
  const { state, verified } = pretended;
  const isBooked = state === 'completed' && (!hasKeys || verified === true);
  return { disowned: { state: disowned.state, isOrderedAgain }, pretended: { state, verified, isBooked } };
}

/** Reads what became of the payouts. The worker has to be stopped: then the book is final. */
export async function readView(
  { shop, ledger, book }: ForgeAccount,
  payoutIds: readonly string[],
  { belief, refusedResumes }: Pick<ForgeView, 'belief' | 'refusedResumes'>,
): Promise<ForgeView> {
  const payouts = await Promise.all(payoutIds.map(async (payoutId) => shop.get(payoutId)));
  const events = await readEvents(ledger, { afterEventId: '0-0' }, ALL_EVENTS);
  return {
    payments: book(),
    payouts: new Map(payouts.flatMap((payout) => (payout === undefined ? [] : [[payout.payoutId, payout]]))),
    tampered: new Set(events.flatMap(({ type, payoutId = '' }) => (type === 'tampering' ? [payoutId] : []))),
    refusedResumes,
    belief,
  };
}
