import { Router, type Request, type Response } from 'express';
import { systemClock } from '../clock.js';
import { readAccountStats } from '../ledger/account-stats.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { readGatewayFacts } from '../ledger/gateway-facts.js';
import { listPayouts } from '../ledger/payout-queries.js';
import { watchHeartbeat } from '../ledger/watch-heartbeat.js';
import { URGENT_STATES, type PayoutState } from '../ledger/states.js';
import type { Logger } from '../logger.js';
import { createFindPages } from './find/find-pages.js';
import { isNewestFirst } from './find/find-listed.js';
import { messagePage, type Message } from './message-page.js';
import { overviewPage, type Overview } from './overview-page.js';
import { respondToError } from './respond-to-error.js';
import { toSite, type Site } from './site.js';

const LISTED_ON_OVERVIEW = 10;

/** A live sender is seen within a second; nobody waits for a page much longer. */
const WATCH_MS = 1_300;

interface PayoutPagesOptions {
  /** Every account of the dashboard, for the switch between them. */
  readonly platformIds: readonly number[];
  readonly explorers: ReadonlyMap<number, string>;
  readonly logger: Logger;
}

/** The pages of an account: its overview, and those on which payouts are found. */
export function createPayoutPages(
  ledger: PayoutLedger,
  { platformIds, explorers, logger }: PayoutPagesOptions,
): Router {
  const site = (request: Request): Site => toSite(request, ledger.connection.platformId, platformIds);
  const pages = new PayoutPages(ledger, { explorers, site });
  const router = Router();
  router.get('/', (request, response) => {
    response.redirect(`${request.baseUrl}/payouts`);
  });
  router.use(createFindPages({ ledger, explorers, site }));
  router.get('/payouts', (request, response) => pages.showOverview(request, response));
  router.use((request, response) => {
    pages.notFound(request, response, { title: 'Not found', text: 'Page not found.' });
  });
  router.use(respondToError(site, logger));
  return router;
}

class PayoutPages {
  readonly #ledger: PayoutLedger;
  readonly #explorers: ReadonlyMap<number, string>;
  readonly #site: (request: Request) => Site;

  constructor(
    ledger: PayoutLedger,
    { explorers, site }: Pick<PayoutPagesOptions, 'explorers'> & { readonly site: (request: Request) => Site },
  ) {
    this.#ledger = ledger;
    this.#explorers = explorers;
    this.#site = site;
  }

  async showOverview(request: Request, response: Response): Promise<void> {
    response.send(overviewPage(this.#site(request), await this.#fetchOverview()));
  }

  notFound(request: Request, response: Response, message: Message): void {
    response.status(404).send(messagePage(this.#site(request), message));
  }

  async #fetchOverview(): Promise<Overview> {
    const { connection } = this.#ledger;
    const [stats, { currencies }, life, ...lists] = await Promise.all([
      readAccountStats(connection),
      readGatewayFacts(connection),
      watchHeartbeat(connection, systemClock, WATCH_MS),
      ...URGENT_STATES.map((state) => listPayouts(connection, listing(state, LISTED_ON_OVERVIEW))),
    ]);
    const listed = new Map(URGENT_STATES.map((state, index) => [state, lists[index]?.payouts ?? []]));
    const shown = { currencies, explorers: this.#explorers, wallNow: connection.clock.wallNow() };
    return { stats, life, listed, shown };
  }
}

function listing(state: PayoutState, limit: number): { state: PayoutState; limit: number; newestFirst: boolean } {
  return { state, limit, newestFirst: isNewestFirst(state) };
}
