import type { Payout } from '../../../ledger/payout.js';
import { pass, waitUntil } from '../wait-until.js';
import type { PolicyAccount } from './policy-account.js';
import { ALICE, BOB, ORDERS, OWN_KEY, PER_WINDOW, THEFTS, THIEF_ADDRESS } from './policy-orders.js';
import type { PolicyView } from './policy-view.js';

export interface PolicyPlay {
  /** Says what happens, one line. */
  readonly note: (text: string) => void;
  readonly stop: AbortSignal;
}

/** The worker looks at what it holds every second. */
const LOOKED_AT_MS = 2_500;

const ALL = [...ORDERS.small, ...ORDERS.often, ORDERS.large, ORDERS.doubtful, ...THEFTS.small, THEFTS.everything];
const LATE = ORDERS.often.slice(PER_WINDOW);
const LATE_THEFTS = THEFTS.small.slice(PER_WINDOW);

/**
 * Plays the whole story against a real worker, which is stopped at the end.
 * @throws WaitTimeoutError, PayoutError where it cannot be judged; ClosedError when it was stopped
 */
export async function playPolicy(account: PolicyAccount, { note, stop }: PolicyPlay): Promise<PolicyView> {
  const { shop, worker, read } = account;
  const becomes = async (what: string, { payoutId }: { payoutId: string }, is: (payout: Payout) => boolean) =>
    waitUntil(account, what, async () => is(await read(payoutId)), stop);
  const isHeldBy =
    (rule: string) =>
    ({ state, held }: Payout) =>
      state === 'held' && held?.rule === rule;

  await shop.enqueueMany([...ORDERS.small, ...ORDERS.often, ORDERS.large, ORDERS.doubtful]);
  note(`the shop orders ${ALL.length - THEFTS.small.length - 1} payouts, two of them above 1000 dollars`);
  await shop.enqueueMany([...THEFTS.small, THEFTS.everything]);
  note("a thief with the shop's key orders five: four of 900, and one of 50000");
  worker.start();

  await becomes('asking for approvals', ORDERS.large, isHeldBy('four-eyes'));
  const asked = (await read(ORDERS.large.payoutId)).held;
  note(`${ORDERS.large.payoutId} is held: two persons of finance have to approve it`);
  await account.decide(ALICE, ORDERS.large.payoutId, 'approve');
  await becomes('counting an approval', ORDERS.large, ({ held }) => held?.needs?.persons === 1);
  note('Alice approves it');
  await account.decide(OWN_KEY, ORDERS.large.payoutId, 'approve');
  note('who signs for the shop approves it too, with a second key');
  await pass(LOOKED_AT_MS, stop);
  const afterOwnKey = (await read(ORDERS.large.payoutId)).held;
  await account.decide(BOB, ORDERS.large.payoutId, 'approve');
  note('Bob approves it');
  await account.decide(BOB, ORDERS.doubtful.payoutId, 'reject');
  await account.decide(ALICE, ORDERS.doubtful.payoutId, 'approve');
  note(`Bob rejects ${ORDERS.doubtful.payoutId}, Alice approves it`);

  for (const theft of LATE_THEFTS) await becomes('holding what the thief ordered', theft, isHeldBy('two-each-10s'));
  note('two of 900 were paid to the thief; the window of his address holds the others');
  await account.deny(THIEF_ADDRESS);
  note("somebody on the worker's host puts his address on the list, and sends SIGHUP");
  for (const theft of LATE_THEFTS) await becomes('refusing the address', theft, isHeldBy('known-thieves'));

  const honest = [...ORDERS.small, ...ORDERS.often, ORDERS.large];
  for (const each of honest) await becomes(`paying ${each.payoutId}`, each, ({ state }) => state === 'completed');
  note(`the window of customer-3 has room: ${LATE.map(({ payoutId }) => payoutId).join(', ')} is paid by itself`);
  await pass(LOOKED_AT_MS, stop);
  await worker.stop();
  const payouts = await Promise.all(ALL.map(async ({ payoutId }) => read(payoutId)));
  return {
    payments: account.book(),
    payouts: new Map(payouts.map((payout) => [payout.payoutId, payout])),
    asked: asked?.needs?.persons,
    afterOwnKey: afterOwnKey?.needs?.persons,
  };
}
