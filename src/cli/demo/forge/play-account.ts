import { pass, waitUntil } from '../wait-until.js';
import { areDecided, type ForgeAccount } from './forge-account.js';
import { LOOT, orderAgain, ORDERS } from './forge-orders.js';
import { actAsShop, readView, type ForgeView } from './forge-view.js';
import { FORGERIES, type Forgery } from './forgeries.js';

export interface ForgePlay {
  /** Says what happens, one line. */
  readonly note: (text: string) => void;
  readonly stop: AbortSignal;
}

/** Long enough for two more sends: what was not sent then is not going to be. */
const QUIET_MS = 2_500;

const FIRST_ORDERS = [
  ...[ORDERS.redirected, ORDERS.raised, ORDERS.copied, ORDERS.repeated, ORDERS.disowned],
  ORDERS.pretended,
];
const DECIDED_FIRST = [
  ...FIRST_ORDERS.filter((each) => each !== ORDERS.pretended).map(({ payoutId }) => payoutId),
  ...[LOOT.invented.payoutId, LOOT.copyId],
];
const ALL_PAYOUTS = [
  ...Object.values(ORDERS).map(({ payoutId }) => payoutId),
  ...[LOOT.invented.payoutId, LOOT.copyId],
];

/**
 * Plays the whole story in one account, against its real worker. The worker is stopped at the end.
 * @throws WaitTimeoutError, PayoutError where it cannot be judged; ClosedError when it was stopped
 */
export async function playAccount(account: ForgeAccount, play: ForgePlay): Promise<ForgeView> {
  const { shop, worker } = account;
  await shop.enqueueMany(FIRST_ORDERS);
  play.note(`the shop orders ${FIRST_ORDERS.length} payouts`);
  await attack('queued', account, play);
  worker.start();
  play.note('the worker starts: it makes sure that no other one sends, then sends one payout a second');
  await waitUntil(account, 'sending the payouts', async () => areDecided(account, DECIDED_FIRST), play.stop);

  await attack('paid', account, play);
  const belief = await actAsShop(account);
  const repeated = [
    ORDERS.repeated.payoutId,
    ...(belief.disowned.isOrderedAgain ? [orderAgain(ORDERS.disowned).payoutId] : []),
  ];
  await waitUntil(account, 'deciding about what was paid', async () => areDecided(account, repeated), play.stop);

  await pauseAccount(account, play);
  await attack('paused', account, play);
  const seen = await waitForResume(account, play.stop);
  await pass(QUIET_MS, play.stop);
  await worker.stop();
  return readView(account, ALL_PAYOUTS, { belief, refusedResumes: seen });
}

async function attack(when: Forgery['when'], { attacker }: ForgeAccount, { note }: ForgePlay): Promise<void> {
  for (const { name, forge } of FORGERIES.filter((each) => each.when === when)) {
    await forge(attacker);
    note(`attacker: ${name}`);
  }
}

/** The gateway answers one payout as for a blocked account, so that the breaker pauses; another waits behind it. */
async function pauseAccount(account: ForgeAccount, { note, stop }: ForgePlay): Promise<void> {
  const { shop } = account;
  await shop.enqueue(ORDERS.blocked);
  await waitUntil(account, 'pausing the account', async () => (await shop.stats()).paused, stop);
  note('the gateway says that the account is blocked: the worker pauses it');
  await shop.enqueue(ORDERS.waiting);
}

/** @returns how often the worker refused to resume, as soon as it did, or has sent what was waiting */
async function waitForResume(account: ForgeAccount, stop: AbortSignal): Promise<number> {
  let refused = 0;
  const isOver = async (): Promise<boolean> => {
    refused = await account.countRefusedResumes();
    return refused > 0 || (await areDecided(account, [ORDERS.waiting.payoutId]));
  };
  await waitUntil(account, 'deciding about the lifted pause', isOver, stop);
  return refused;
}
