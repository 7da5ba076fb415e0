import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type {
  AppViewRoute,
  ControllerHandlerReturnType,
  JobStatus,
  QueueJobJson,
  ThemeTokenName,
} from '@bull-board/api/typings/app';
import { ExpressAdapter } from '@bull-board/express';
import type { Job, Queue } from 'bullmq';
import type { Router } from 'express';
import { RedisUnavailableError } from '../base/errors.js';
import { formatCurrency, shorten } from '../base/format.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { readEach } from '../ledger/payout-queries.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutJobData, PayoutQueues } from '../queues/payout-queues.js';
import { toRedisError } from '../base/redis-errors.js';
import { payoutPath } from './layout/payout-table.js';

/** Bull Board loads fonts from a font service; system fonts need no other host. */
const SYSTEM_FONTS: Partial<Record<ThemeTokenName, string>> = {
  'font-sans': 'system-ui, sans-serif',
  'font-mono': 'ui-monospace, monospace',
};

/** Bull Board for both queues, read-only. Mount it beside the payout pages, as `/board`. */
export function createBoard(ledger: PayoutLedger, queues: PayoutQueues): Router {
  const server = new BoardServer();
  createBullBoard({
    queues: [
      new PayoutJobAdapter(queues.withdraw, ledger, 'Payouts to send'),
      new PayoutJobAdapter(queues.transactionstatus, ledger, 'Accepted payouts, polled until they are final'),
    ],
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: `Payouts ${ledger.connection.platformId}`,
        hideDocsLink: true,
        miscLinks: [{ text: 'Back to the payouts', url: '../overview' }],
        theme: { light: SYSTEM_FONTS, dark: SYSTEM_FONTS },
      },
    },
  });
  return server.getRouter();
}

/** Bull Board's Express adapter for any mount path, without other hosts, with 503 while Redis is unavailable. */
class BoardServer extends ExpressAdapter {
  constructor() {
    super();
    this.app.disable('x-powered-by');
  }

  override setEntryRoute(entry: AppViewRoute): this {
    this.app.get(entry.route, (request, response, next) => {
      const { name, params } = entry.handler({ basePath: request.baseUrl, uiConfig: this.uiConfig });
      response.render(name, params, (error: Error | null, page?: string) => {
        if (page === undefined) next(error);
        else response.send(withLinkToPayouts(withoutOtherHosts(page)));
      });
    });
    return this;
  }

  /** An unavailable Redis is no server error: the client may retry. */
  override setErrorHandler(handler: (error: Error) => ControllerHandlerReturnType): this {
    return super.setErrorHandler((error) => {
      const known = toRedisError(error);
      if (!(known instanceof RedisUnavailableError)) return handler(error);
      // Bull Board's type lists only its own codes.
      return { status: 503 as 500, body: { error: known.message, message: known.message } };
    });
  }

  override getRouter(): Router {
    return super.getRouter() as Router;
  }
}

const LINK_STYLE =
  'position:fixed;right:16px;bottom:16px;z-index:10;padding:8px 16px;border-radius:999px;background:#4338ca;color:#fff;' +
  'font:500 14px system-ui,sans-serif;text-decoration:none;box-shadow:0 2px 8px rgb(0 0 0 / 25%)';

/** Bull Board's own place for such links is hidden in a menu. */
function withLinkToPayouts(page: string): string {
  return page.replace('</body>', `<a href="../overview" style="${LINK_STYLE}">Back to the payouts</a></body>`);
}

function withoutOtherHosts(page: string): string {
  return page.replace(/<link\s[^>]*href="(?:https?:)?\/\/[^>]*>/g, '');
}

/** A job holds only what was true when it was added, so the payout's present state is added. */
interface BoardJobData extends PayoutJobData {
  readonly payout?: Payout | undefined;
}

class PayoutJobAdapter extends BullMQAdapter {
  readonly #ledger: PayoutLedger;

  constructor(queue: Queue<PayoutJobData>, ledger: PayoutLedger, description: string) {
    super(queue, {
      readOnlyMode: true,
      allowRetries: false,
      description,
      externalJobUrl: ({ data }) => ({
        href: `..${payoutPath((data as BoardJobData).payoutId)}`,
        displayText: 'Payout and its history',
      }),
    });
    this.#ledger = ledger;
    this.setFormatter('name', ({ data }: QueueJobJson) => describeJob(data as BoardJobData));
    this.setFormatter('data', showJobData);
  }

  override async getJobs(statuses: JobStatus[], start?: number, end?: number): Promise<Job[]> {
    return this.#withPayouts(await super.getJobs(statuses, start, end));
  }

  override async getJob(jobId: string): Promise<Job | undefined> {
    // Bull Board decodes the id in its URL twice. A job's id has `%3A` in place of a colon.
    const job = await super.getJob(jobId.replaceAll(':', '%3A'));
    return job && (await this.#withPayouts([job]))[0];
  }

  async #withPayouts(jobs: Job[]): Promise<Job[]> {
    const payoutIds = jobs.map(({ data }) => (data as PayoutJobData | null)?.payoutId);
    // A job whose data someone has altered names none.
    const { payouts } = await readEach(
      this.#ledger.connection,
      payoutIds.filter((payoutId) => typeof payoutId === 'string'),
    );
    const byId = new Map(payouts.map((payout) => [payout.payoutId, payout]));
    for (const job of jobs) {
      const data = job.data as PayoutJobData;
      job.data = { ...data, payout: byId.get(data.payoutId) } satisfies BoardJobData;
    }
    return jobs;
  }
}

function describeJob({ payoutId, amount, payout, ...data }: BoardJobData): string {
  return `${payoutId} · ${amount} of ${formatCurrency(data)} · ${payout?.state ?? 'not in the ledger'}`;
}

/** Fields not listed here are not shown. */
function showJobData({
  payoutId,
  amount,
  addressTo,
  payout,
  ...data
}: BoardJobData): Readonly<Record<string, unknown>> {
  return {
    payoutId,
    state: payout?.state ?? 'not in the ledger',
    amount,
    currency: formatCurrency(data),
    addressTo: shorten(addressTo),
    gatewayId: payout?.gatewayId ?? data.gatewayId,
    error: payout?.message,
  };
}
