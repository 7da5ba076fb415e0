import { type Request, type Response, Router } from 'express';
import { systemClock } from '../../base/clock.js';
import type { Payout } from '../../ledger/payout.js';
import { readAccountStats } from '../../ledger/reads/account-stats.js';
import { readReadable } from '../../ledger/payout-queries.js';
import { readPolicyReport } from '../../ledger/reads/policy-report.js';
import { type BegunSend, readSends } from '../../ledger/reads/read-audited.js';
import { readBegunSpends } from '../../ledger/read-spends.js';
import { heldPage } from '../held/held-page.js';
import { findHeld, readHeldQuery } from '../held/held-query.js';
import { readPicked } from '../layout/selection.js';
import type { PageContext } from '../page-context.js';
import { auditPage, type AuditRow, toAuditRow } from './audit-page.js';
import { whoSaid } from './payout-control.js';
import { policyPage } from './policy-page.js';

const SENDS_ON_PAGE = 50;
/** A script writes a send's event and its spend one after the other. */
const SCRIPT_MS = 1_000;
const NO_PAGE = 'There is no such page.';

export function createControlPages(context: PageContext): Router {
  const router = Router();
  router.get('/held', (request, response) => showHeld(context, request, response));
  router.get('/policy', async (request, response) => {
    const [report, { currencies }] = await Promise.all([readPolicyReport(context.connection), context.shown()]);
    response.send(policyPage(context.site(request), report, systemClock.wallNow(), currencies));
  });
  router.get('/audit', (request, response) => showAudit(context, request, response));
  return router;
}

async function showHeld(context: PageContext, request: Request, response: Response): Promise<void> {
  const query = readHeldQuery(request.query);
  if (query === undefined) {
    context.notFound(request, response, NO_PAGE);
    return;
  }
  const { connection } = context;
  const [page, stats, report, shown] = await Promise.all([
    findHeld(connection, query),
    readAccountStats(connection),
    readPolicyReport(connection),
    context.shown(),
  ]);
  const view = context.viewAt(shown.wallNow);
  const list = {
    ...{ query, page, total: stats.held, report, picked: readPicked(request.query) },
    whoSaid: (payout: Payout) => whoSaid(payout, view),
  };
  response.send(heldPage(context.site(request), list, shown));
}

async function showAudit(context: PageContext, request: Request, response: Response): Promise<void> {
  const { before } = request.query;
  if (before !== undefined && !(typeof before === 'string' && /^\d{1,16}-\d{1,16}$/.test(before))) {
    context.notFound(request, response, NO_PAGE);
    return;
  }
  const { connection } = context;
  const [{ sends, next }, report, shown] = await Promise.all([
    readSends(connection, SENDS_ON_PAGE, before),
    readPolicyReport(connection),
    context.shown(),
  ]);
  const rows = await toAuditRows(context, sends);
  const hasKeyring = context.viewAt(0) !== undefined;
  const list = { rows, next, isFirst: before === undefined, hasKeyring, report };
  response.send(auditPage(context.site(request), list, shown));
}

async function toAuditRows(context: PageContext, sends: readonly BegunSend[]): Promise<readonly AuditRow[]> {
  const { connection } = context;
  const [newest, oldest] = [sends[0], sends.at(-1)];
  if (newest === undefined || oldest === undefined) return [];
  const payoutIds = [...new Set(sends.map(({ payoutId }) => payoutId))];
  const [read, spends] = await Promise.all([
    readReadable(connection, payoutIds, () => undefined),
    readBegunSpends(connection, oldest.storedAt - SCRIPT_MS, newest.storedAt + SCRIPT_MS),
  ]);
  const payouts = new Map(read.map((payout) => [payout.payoutId, payout]));
  const usd = new Map(spends.map(({ spend, at }) => [`${spend.payoutId} ${at}`, spend.usd]));
  // Signatures and approvals may have expired since.
  return sends.map(({ payoutId, at }) =>
    toAuditRow(payoutId, at, payouts.get(payoutId), usd.get(`${payoutId} ${at}`), context.viewAt(at)),
  );
}
