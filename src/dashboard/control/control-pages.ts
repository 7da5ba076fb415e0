import { Router, type Request, type Response } from 'express';
import { systemClock } from '../../base/clock.js';
import { readAccountStats } from '../../ledger/reads/account-stats.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { Payout } from '../../ledger/payout.js';
import { readReadable } from '../../ledger/reads/payout-queries.js';
import { readPolicyReport } from '../../ledger/reads/policy-report.js';
import { readSends, type BegunSend } from '../../ledger/reads/read-audited.js';
import { readBegunSpends } from '../../ledger/reads/read-spends.js';
import { auditPage, type AuditRow, toAuditRow } from './audit-page.js';
import { findHeld, readHeldQuery } from '../held/held-query.js';
import { heldPage } from '../held/held-page.js';
import { messagePage } from '../respond.js';
import { policyPage } from './policy-page.js';
import type { Shown } from '../layout/pieces.js';
import type { Site } from '../layout/layout.js';
import type { ControlFiles } from './control-files.js';
import { whoSaid } from './payout-control.js';

interface ControlPagesOptions {
  readonly ledger: PayoutLedger;
  readonly files: ControlFiles;
  readonly explorers: ReadonlyMap<number, string>;
  readonly site: (request: Request) => Site;
}

const SENDS_ON_PAGE = 50;
/** A script writes a send's event and its spend one after the other. */
const SCRIPT_MS = 1_000;

export function createControlPages(options: ControlPagesOptions): Router {
  const pages = new ControlPages(options);
  const router = Router();
  router.get('/held', (request, response) => pages.showHeld(request, response));
  router.get('/policy', (request, response) => pages.showPolicy(request, response));
  router.get('/audit', (request, response) => pages.showAudit(request, response));
  return router;
}

class ControlPages {
  readonly #options: ControlPagesOptions;

  constructor(options: ControlPagesOptions) {
    this.#options = options;
  }

  async showHeld(request: Request, response: Response): Promise<void> {
    const query = readHeldQuery(request.query);
    if (query === undefined) {
      this.#notFound(request, response);
      return;
    }
    const { files, site, ledger } = this.#options;
    const { connection } = ledger;
    const [page, stats, report, shown] = await Promise.all([
      findHeld(connection, query),
      readAccountStats(connection),
      readPolicyReport(connection),
      this.#shown(),
    ]);
    const keyring = files.keyringOf(connection.platformId);
    const view = keyring && { platformId: connection.platformId, keyring, now: shown.wallNow };
    const list = { query, page, total: stats.held, report, whoSaid: (payout: Payout) => whoSaid(payout, view) };
    response.send(heldPage(site(request), list, shown));
  }

  async showPolicy(request: Request, response: Response): Promise<void> {
    const { site, ledger } = this.#options;
    response.send(policyPage(site(request), await readPolicyReport(ledger.connection), systemClock.wallNow()));
  }

  async showAudit(request: Request, response: Response): Promise<void> {
    const { before } = request.query;
    if (before !== undefined && !(typeof before === 'string' && /^\d{1,16}-\d{1,16}$/.test(before))) {
      this.#notFound(request, response);
      return;
    }
    const { files, site, ledger } = this.#options;
    const { connection } = ledger;
    const [{ sends, next }, report, shown] = await Promise.all([
      readSends(connection, { limit: SENDS_ON_PAGE, before }),
      readPolicyReport(connection),
      this.#shown(),
    ]);
    const rows = await this.#toRows(sends);
    const list = {
      rows,
      next,
      isFirst: before === undefined,
      hasKeyring: files.keyringOf(connection.platformId) !== undefined,
      report,
    };
    response.send(auditPage(site(request), list, shown));
  }

  async #toRows(sends: readonly BegunSend[]): Promise<readonly AuditRow[]> {
    const { files, ledger } = this.#options;
    const { connection } = ledger;
    const [newest, oldest] = [sends[0], sends.at(-1)];
    if (newest === undefined || oldest === undefined) return [];
    const payoutIds = [...new Set(sends.map(({ payoutId }) => payoutId))];
    const [payouts, spends] = await Promise.all([
      readReadable(connection, payoutIds, () => undefined),
      readBegunSpends(connection, oldest.storedAt - SCRIPT_MS, newest.storedAt + SCRIPT_MS),
    ]);
    const keyring = files.keyringOf(connection.platformId);
    const facts = {
      payouts: new Map(payouts.map((payout) => [payout.payoutId, payout])),
      usd: new Map(
        spends.flatMap(({ spend: { payoutId, usd }, at }) => (usd === undefined ? [] : [[`${payoutId} ${at}`, usd]])),
      ),
      view: keyring && { platformId: connection.platformId, keyring },
    };
    return sends.map((send) => toAuditRow(send, facts));
  }

  #notFound(request: Request, response: Response): void {
    const page = messagePage(this.#options.site(request), { title: 'Not found', text: 'There is no such page.' });
    response.status(404).send(page);
  }

  async #shown(): Promise<Shown> {
    const { ledger, explorers } = this.#options;
    const { currencies } = await readGatewayFacts(ledger.connection);
    return { currencies, explorers, wallNow: ledger.connection.clock.wallNow() };
  }
}
