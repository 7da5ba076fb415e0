import { Router, type Request, type Response } from 'express';
import { payoutIdField, txhashField } from '../fields.js';
import { readAccountStats } from '../ledger/account-stats.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { listPayouts } from '../ledger/payout-queries.js';
import type { Payout } from '../ledger/payout.js';
import { isPayoutState, type PayoutState } from '../ledger/states.js';
import { messagePage, type Message } from './message-page.js';
import type { ShowOverview } from './overview/show-overview.js';
import { payoutPage } from './payout-page.js';
import { isNewestFirst, statePage } from './state-page.js';
import { payoutPath } from './payout-path.js';
import type { Site } from './site.js';

const LISTED_ON_PAGE = 50;

export interface PayoutPagesOptions {
  readonly ledger: PayoutLedger;
  readonly site: (request: Request) => Site;
  readonly showOverview: ShowOverview;
}

/** The payout pages: the overview of the account, the payouts of a state, one payout. */
export function createPayoutPages({ ledger, site, showOverview }: PayoutPagesOptions): Router {
  const pages = new PayoutPages(ledger, site, showOverview);
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
  return router;
}

class PayoutPages {
  readonly #ledger: PayoutLedger;
  readonly #site: (request: Request) => Site;

  readonly #showOverview: ShowOverview;

  constructor(ledger: PayoutLedger, site: (request: Request) => Site, showOverview: ShowOverview) {
    this.#ledger = ledger;
    this.#site = site;
    this.#showOverview = showOverview;
  }

  /** `/payouts`, by its query: one payout, a search, a state, or the overview. */
  async showPayouts(request: Request, response: Response): Promise<void> {
    const { payoutId, q, state, after } = request.query;
    if (typeof payoutId === 'string') await this.showPayout(request, response, payoutId);
    else if (typeof q === 'string' && q.trim() !== '') await this.#search(request, response, q.trim());
    else if (typeof state === 'string') await this.#showState(request, response, { state, after });
    else await this.#showOverview(request, response);
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
}

function listing(state: PayoutState, limit: number): { state: PayoutState; limit: number; newestFirst: boolean } {
  return { state, limit, newestFirst: isNewestFirst(state) };
}
