import { Router, type Request, type Response } from 'express';
import { systemClock } from '../clock.js';
import { payoutIdField, txhashField } from '../fields.js';
import { readAccountStats } from '../ledger/account-stats.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { listPayouts } from '../ledger/payout-queries.js';
import { watchHeartbeat } from '../ledger/watch-heartbeat.js';
import type { Payout } from '../ledger/payout.js';
import { isPayoutState, URGENT_STATES, type PayoutState } from '../ledger/states.js';
import type { Logger } from '../logger.js';
import { messagePage, type Message } from './message-page.js';
import { overviewPage, type Overview } from './overview-page.js';
import { payoutPage } from './payout-page.js';
import { isNewestFirst, statePage } from './state-page.js';
import { payoutPath } from './payout-path.js';
import { respondToError } from './respond-to-error.js';
import { toSite, type Site } from './site.js';

const LISTED_ON_OVERVIEW = 10;
const LISTED_ON_PAGE = 50;

/** A live sender is seen within a second; nobody waits for a page much longer. */
const WATCH_MS = 1_300;

/**
 * The payout pages: the overview of the account, the payouts of a state, one payout.
 * @param platformIds - every account of the dashboard, for the switch between them
 */
export function createPayoutPages(ledger: PayoutLedger, platformIds: readonly number[], logger: Logger): Router {
  const site = (request: Request): Site => toSite(request, ledger.connection.platformId, platformIds);
  const pages = new PayoutPages(ledger, site);
  const router = Router();
  router.get('/', (request, response) => {
    response.redirect(`${request.baseUrl}/payouts`);
  });
  router.get('/payouts', (request, response) => pages.showPayouts(request, response));
  router.get('/payouts/*payoutId', async (request, response) => {
    await pages.showPayout(request, response, request.params.payoutId.join('/'));
  });
  router.use((request, response) => {
    pages.notFound(request, response, { title: 'Not found', text: 'Page not found.' });
  });
  router.use(respondToError(site, logger));
  return router;
}

class PayoutPages {
  readonly #ledger: PayoutLedger;
  readonly #site: (request: Request) => Site;

  constructor(ledger: PayoutLedger, site: (request: Request) => Site) {
    this.#ledger = ledger;
    this.#site = site;
  }

  /** `/payouts`, by its query: one payout, a search, a state, or the overview. */
  async showPayouts(request: Request, response: Response): Promise<void> {
    const { payoutId, q, state, after } = request.query;
    if (typeof payoutId === 'string') await this.showPayout(request, response, payoutId);
    else if (typeof q === 'string' && q.trim() !== '') await this.#search(request, response, q.trim());
    else if (typeof state === 'string') await this.#showState(request, response, { state, after });
    else response.send(overviewPage(this.#site(request), await this.#fetchOverview()));
  }

  async showPayout(request: Request, response: Response, payoutId: string): Promise<void> {
    const payout = await this.#find(payoutId);
    if (payout !== undefined) response.send(payoutPage(this.#site(request), payout));
    else this.notFound(request, response, { title: 'Not found', text: `Payout ${payoutId} not found.` });
  }

  notFound(request: Request, response: Response, message: Message): void {
    response.status(404).send(messagePage(this.#site(request), message));
  }

  async #find(payoutId: string): Promise<Payout | undefined> {
    return payoutIdField.safeParse(payoutId).success ? this.#ledger.get(payoutId) : undefined;
  }

  async #search(request: Request, response: Response, text: string): Promise<void> {
    const payout = await this.#find(text);
    const byTxhash = txhashField.safeParse(text).success ? await this.#ledger.findByTxhash(text) : undefined;
    const payoutId = payout?.payoutId ?? byTxhash;
    if (payoutId !== undefined) response.redirect(`${request.baseUrl}${payoutPath(payoutId)}`);
    else {
      const message = `No payout has the id or the txhash “${text}”.`;
      this.notFound(request, response, { title: 'Nothing found', text: message, search: text });
    }
  }

  async #showState(
    request: Request,
    response: Response,
    { state, after }: { readonly state: string; readonly after: unknown },
  ): Promise<void> {
    const cursor = typeof after === 'string' && /^\d{1,16}$/.test(after) ? after : undefined;
    if (!isPayoutState(state) || (after !== undefined && cursor === undefined)) {
      this.notFound(request, response, { title: 'Not found', text: 'Unknown state or page.' });
      return;
    }
    const { connection } = this.#ledger;
    const [stats, page] = await Promise.all([
      readAccountStats(connection),
      listPayouts(connection, {
        ...listing(state, LISTED_ON_PAGE),
        ...(cursor === undefined ? {} : { cursor }),
      }),
    ]);
    const list = { stats, state, page, isFirst: cursor === undefined, wallNow: connection.clock.wallNow() };
    response.send(statePage(this.#site(request), list));
  }

  async #fetchOverview(): Promise<Overview> {
    const { connection } = this.#ledger;
    const [stats, life, ...lists] = await Promise.all([
      readAccountStats(connection),
      watchHeartbeat(connection, systemClock, WATCH_MS),
      ...URGENT_STATES.map((state) => listPayouts(connection, listing(state, LISTED_ON_OVERVIEW))),
    ]);
    const listed = new Map(URGENT_STATES.map((state, index) => [state, lists[index]?.payouts ?? []]));
    return { stats, life, listed, wallNow: connection.clock.wallNow() };
  }
}

function listing(state: PayoutState, limit: number): { state: PayoutState; limit: number; newestFirst: boolean } {
  return { state, limit, newestFirst: isNewestFirst(state) };
}
