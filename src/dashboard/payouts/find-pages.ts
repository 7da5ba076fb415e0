import { type Request, type Response, Router } from 'express';
import { once } from 'node:events';
import { gatewayIdField, payoutIdField } from '../../base/fields.js';
import { formatCsvHeader, formatCsvRows } from '../../ledger/payout-csv.js';
import { readAccountStats } from '../../ledger/reads/account-stats.js';
import { readActGroups, readActPayouts } from '../../ledger/reads/act-groups.js';
import { type Batch, countBatch, readBatches, readBatchSummary } from '../../ledger/reads/batches.js';
import type { StateSums } from '../../ledger/reads/currency-tallies.js';
import { listPayoutIds, readEach, readReadable } from '../../ledger/payout-queries.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { batchField, type Payout } from '../../ledger/payout.js';
import { readAudited } from '../../ledger/reads/read-audited.js';
import { readStatistics } from '../../ledger/reads/statistics.js';
import { formatCommand } from '../../operator/next-steps.js';
import { readPayoutControl } from '../control/payout-control.js';
import { batchPath, payoutPath } from '../layout/payout-table.js';
import { readPicked } from '../layout/selection.js';
import type { PageContext } from '../page-context.js';
import { messagePage } from '../respond.js';
import { activityPage, actPage } from './activity-page.js';
import { batchesPage, batchPage, LISTED_BATCHES, uncountedPage } from './batch-page.js';
import { listPage } from './list-page.js';
import { findListed, LISTED_ON_PAGE, type ListQuery, readListQuery, understandSearch } from './list-query.js';
import { payoutPage } from './payout-page.js';

/** Pages to find payouts: search, lists, payout, batch, activity. The next router gets unknown paths. */
export function createFindPages(context: PageContext): Router {
  const pages = new FindPages(context);
  const router = Router();
  router.get('/payouts', (request, response) => pages.choose(request)(request, response));
  router.get('/payouts.csv', (request, response) => pages.sendCsv(request, response));
  router.get('/payouts/*payoutId', (request, response) =>
    pages.showPayout(request, response, request.params.payoutId.join('/')),
  );
  router.get('/batches', (request, response) => pages.showBatches(request, response));
  router.get('/batch', (request, response) => pages.showBatch(request, response));
  router.get('/activity', (request, response) => pages.showActivity(request, response));
  router.get('/act', (request, response) => pages.showAct(request, response));
  return router;
}

type Page = (request: Request, response: Response) => Promise<void>;

/** Their count takes less than a page's other reads. */
const COUNTED_AT_ONCE = 1_000;
/** The page that asks is answered first. */
const COUNT_AFTER_MS = 100;
/** The pages show a count for some refreshes, and until the next one ends. */
const COUNT_KEPT_MS = 10_000;
const KEPT_COUNTS = 100;

interface BatchCount {
  readonly sums: StateSums | undefined;
  /** `performance.now()`. */
  readonly until: number;
}

class FindPages {
  readonly #context: PageContext;
  readonly #ledger: PayoutLedger;
  readonly #counts = new Map<string, BatchCount>();

  constructor(context: PageContext) {
    this.#context = context;
    this.#ledger = context.ledger;
  }

  choose({ query }: Request): Page {
    const { payoutId, q } = query;
    if (typeof payoutId === 'string') return (request, response) => this.showPayout(request, response, payoutId);
    if (typeof q === 'string' && q.trim() !== '')
      return (request, response) => this.#search(request, response, q.trim());
    return (request, response) => this.#showList(request, response);
  }

  async showPayout(request: Request, response: Response, payoutId: string): Promise<void> {
    const [payout, shown] = await Promise.all([this.#find(payoutId), this.#context.shown()]);
    if (payout === undefined) {
      this.#context.notFound(request, response, await describeMissing(this.#ledger.connection, payoutId));
      return;
    }
    const control = await readPayoutControl(this.#context, payout, shown);
    response.send(payoutPage(this.#context.site(request), payout, shown, control));
  }

  async sendCsv(request: Request, response: Response): Promise<void> {
    const query = readListQuery(request.query);
    if (query === undefined || Object.keys(query.problems).length > 0) {
      this.#context.notFound(request, response, 'There is no such list.');
      return;
    }
    const { connection } = this.#ledger;
    const day = new Date(connection.clock.wallNow()).toISOString().slice(0, 10);
    const fileName = ['payouts', connection.platformId, ...Object.values(query.texts), day].join('-');
    response.attachment(`${fileName.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 120)}.csv`);
    await sendCsv(response, connection, query, request.method === 'HEAD');
  }

  async showBatch(request: Request, response: Response): Promise<void> {
    const { name } = request.query;
    const { connection } = this.#ledger;
    const batch = batchField.safeParse(name);
    const [summary, shown, stats, statistics] = await Promise.all([
      batch.success ? readBatchSummary(connection, batch.data, (head) => this.#count(head)) : undefined,
      this.#context.shown(),
      readAccountStats(connection),
      readStatistics(connection),
    ]);
    if (summary === undefined) {
      this.#context.notFound(request, response, `Batch ${typeof name === 'string' ? name : ''} not found.`);
      return;
    }
    if (summary.sums === undefined) {
      response.send(uncountedPage(this.#context.site(request), summary));
      return;
    }
    const urgent = await readReadable(connection, summary.urgent, () => undefined);
    response.send(batchPage(this.#context.site(request), { summary, urgent, stats, statistics }, shown));
  }

  /** A page does not wait for the count of a large batch that no sender keeps. The next refresh gets the result. */
  async #count({ name: batch, total }: Pick<Batch, 'name' | 'total'>): Promise<StateSums | undefined> {
    if (total <= COUNTED_AT_ONCE) return countBatch(this.#ledger.connection, batch);
    const known = this.#counts.get(batch);
    if (known !== undefined && performance.now() < known.until) return known.sums;
    const keep = (sums: StateSums | undefined, until: number): void => {
      this.#counts.delete(batch);
      this.#counts.set(batch, { sums, until });
      const [oldest = ''] = this.#counts.keys();
      if (this.#counts.size > KEPT_COUNTS) this.#counts.delete(oldest);
    };
    const count = async (): Promise<void> => {
      const sums = await countBatch(this.#ledger.connection, batch).catch(() => known?.sums);
      keep(sums, performance.now() + COUNT_KEPT_MS);
    };
    keep(known?.sums, Infinity);
    setTimeout(() => void count(), COUNT_AFTER_MS).unref();
    return known?.sums;
  }

  async showBatches(request: Request, response: Response): Promise<void> {
    const { connection } = this.#ledger;
    const [listed, shown, stats, statistics] = await Promise.all([
      readBatches(connection, LISTED_BATCHES),
      this.#context.shown(),
      readAccountStats(connection),
      readStatistics(connection),
    ]);
    response.send(batchesPage(this.#context.site(request), { ...listed, stats, statistics }, shown));
  }

  async showActivity(request: Request, response: Response): Promise<void> {
    const { before } = request.query;
    if (before !== undefined && !(typeof before === 'string' && /^(event )?\d{1,16}-\d{1,16}$/.test(before))) {
      this.#context.notFound(request, response, 'There is no such page.');
      return;
    }
    const { groups, next } = await readActGroups(this.#ledger.connection, LISTED_ON_PAGE, before);
    const list = { acts: groups, next, isFirst: before === undefined };
    response.send(activityPage(this.#context.site(request), list));
  }

  async showAct(request: Request, response: Response): Promise<void> {
    const { id, offset = '0' } = request.query;
    const isAct = typeof id === 'string' && /^\d{1,16}-\d{1,16}$/.test(id);
    const isPage = isAct && typeof offset === 'string' && /^\d{1,6}$/.test(offset);
    const { connection } = this.#ledger;
    const first = Number(offset);
    const end = first + LISTED_ON_PAGE;
    const found = isPage ? await readActPayouts(connection, id, end) : undefined;
    if (!isPage || found === undefined) {
      this.#context.notFound(request, response, 'There is no such act, or it is no longer kept.');
      return;
    }
    const { act, payoutIds, isWhole } = found;
    const [read, shown] = await Promise.all([readEach(connection, payoutIds.slice(first)), this.#context.shown()]);
    const list = { id, act, ...read, offset: first, next: isWhole ? undefined : end };
    response.send(actPage(this.#context.site(request), list, shown));
  }

  /** Opens a single exact match; lists anything else. */
  async #search(request: Request, response: Response, text: string): Promise<void> {
    const { connection } = this.#ledger;
    const [payout, byGatewayId, isBatch] = await Promise.all([
      this.#find(text),
      gatewayIdField.safeParse(text).success ? this.#ledger.findByGatewayId(text) : undefined,
      batchField.safeParse(text).success ? this.#isBatch(text) : false,
    ]);
    const payoutId = payout?.payoutId ?? byGatewayId;
    if (payoutId !== undefined) response.redirect(`${request.baseUrl}${payoutPath(payoutId)}`);
    else if (isBatch) response.redirect(`${request.baseUrl}${batchPath(text)}`);
    else {
      const { currencies } = await readGatewayFacts(connection);
      const meant = understandSearch(text, currencies);
      const isVague = 'reference' in meant || 'address' in meant;
      const query = (isVague && (await this.#findPrefix(text))) || readListQuery(meant);
      if (query === undefined || Object.keys(query.problems).length > 0) {
        const message = `No payout has the id, the payment or the reference “${text}”.`;
        response
          .status(404)
          .send(messagePage(this.#context.site(request), { title: 'Nothing found', text: message, search: text }));
      } else await this.#sendList(request, response, query, text);
    }
  }

  /** What may be a part of something else is the beginning of a payoutId, if there is one that begins so. */
  async #findPrefix(text: string): Promise<ListQuery | undefined> {
    const query = readListQuery({ id: text });
    if (query === undefined || 'id' in query.problems) return undefined;
    const { payouts, unreadable, next } = await findListed(this.#ledger.connection, query, { limit: 1 });
    return payouts.length + unreadable.length > 0 || next !== undefined ? query : undefined;
  }

  async #showList(request: Request, response: Response): Promise<void> {
    const query = readListQuery(request.query);
    if (query === undefined || 'state' in query.problems)
      this.#context.notFound(request, response, 'Unknown state or page.');
    else await this.#sendList(request, response, query);
  }

  async #sendList(request: Request, response: Response, query: ListQuery, search?: string): Promise<void> {
    const { connection } = this.#ledger;
    const isUsable = Object.keys(query.problems).length === 0;
    const [stats, listed, shown] = await Promise.all([
      readAccountStats(connection),
      isUsable
        ? findListed(connection, query, { limit: LISTED_ON_PAGE })
        : { payouts: [], unreadable: [], next: undefined, searched: 0 },
      this.#context.shown(),
    ]);
    const isFound = listed.payouts.length + listed.unreadable.length > 0 || search === undefined;
    response.status(!isUsable ? 400 : isFound ? 200 : 404);
    response.send(
      listPage(this.#context.site(request), { query, listed, stats, search, picked: readPicked(request.query) }, shown),
    );
  }

  async #find(payoutId: string): Promise<Payout | undefined> {
    return payoutIdField.safeParse(payoutId).success ? this.#ledger.get(payoutId) : undefined;
  }

  async #isBatch(batch: string): Promise<boolean> {
    return (await listPayoutIds(this.#ledger.connection, { batch, limit: 1 })).payoutIds.length > 0;
  }
}

/** Why a payout has no page: it never existed or retention removed it. */
async function describeMissing(connection: LedgerConnection, payoutId: string): Promise<string> {
  const [record] = payoutIdField.safeParse(payoutId).success ? await readAudited(connection, [payoutId]) : [];
  if (record?.kind !== 'removed') return `Payout ${payoutId} not found.`;
  const command = formatCommand({ name: 'get', args: [payoutId] }, connection.platformId);
  return `Payout ${payoutId} was ${record.state}, and PAYOUT_RETENTION_DAYS removed it from Redis. With the worker's PAYOUT_ARCHIVE_DIR, on its host, this shows it: ${command}`;
}

const ROWS_AT_ONCE = 500;

/** Time of one search step, so that a download with few rows notices when its reader has gone. */
const STEP_MS = 1_000;

/**
 * Sends all rows of a list as CSV, page by page, as fast as the client reads. If Redis becomes unavailable, it breaks
 * the connection: a cut-off file must not look whole.
 * @param isHead - HEAD gets the headers only
 */
export async function sendCsv(
  response: Response,
  connection: LedgerConnection,
  query: ListQuery,
  isHead: boolean,
): Promise<void> {
  let page = await findListed(connection, query, { limit: ROWS_AT_ONCE, searchMs: STEP_MS });
  response.type('text/csv');
  if (isHead) {
    response.end();
    return;
  }
  let text = formatCsvHeader() + formatCsvRows([...page.payouts, ...page.unreadable], { safe: true });
  for (;;) {
    const isRoom = text === '' || response.write(text);
    // The `close` of a reader who left while rows were read has passed: nothing would end the wait.
    if (!isRoom && !response.destroyed) await untilRoom(response);
    if (response.destroyed || page.next === undefined) break;
    page = await findListed(connection, { ...query, after: page.next }, { limit: ROWS_AT_ONCE, searchMs: STEP_MS });
    text = formatCsvRows([...page.payouts, ...page.unreadable], { safe: true });
  }
  response.end();
}

async function untilRoom(response: Response): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    // A large list has thousands of pages, so no page may leave a listener behind.
    settled.abort();
  }
}
