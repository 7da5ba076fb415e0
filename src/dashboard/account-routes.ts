import { Router, type Request } from 'express';
import { describeRedis } from '../base/describe-redis.js';
import { systemClock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { AccountAccess } from '../queues/open-account.js';
import { createBoard } from './board.js';
import type { ControlFiles } from './control/control-files.js';
import { createControlPages } from './control/control-pages.js';
import { createFindPages } from './payouts/find-pages.js';
import { PageContext } from './page-context.js';
import {
  respondInTime,
  respondToError,
  respondToLostRedis,
  type RespondWithoutRedis,
  unavailablePage,
} from './respond.js';
import type { OverviewReader } from './overview/overview.js';
import { createDiagnostics } from './overview/diagnostics-page.js';
import { createOverview } from './overview/overview-page.js';
import { AccountPoller } from '../operator/account-poller.js';
import { accountHeadline } from '../operator/account-headline.js';
import { boardHeaders } from './security-headers.js';
import { type DashboardFrame, toSite, type Site } from './layout/layout.js';

export interface ShownAccount {
  readonly platformId: number;
  readonly watch: AccountPoller;
  readonly reader: OverviewReader;
  readonly router: Router;
}

/** Makes the pages of an account, and watches it while a reader has them open. */
export function showAccount(
  account: AccountAccess,
  frame: DashboardFrame,
  reader: OverviewReader,
  explorers: ReadonlyMap<number, string>,
  files: ControlFiles,
  logger: Logger,
): ShownAccount {
  const { ledger, queues } = account;
  const { connection } = ledger;
  const watch = new AccountPoller(account, systemClock);
  const site = (request: Request): Site => {
    const { tone, headline } = accountHeadline(watch.observation);
    return {
      ...toSite(request, connection.platformId, frame, connection.clock.wallNow()),
      isSigned: files.keyringOf(connection.platformId) !== undefined,
      alarm: tone === 'bad' ? headline : undefined,
      where: `Account ${connection.platformId} · Redis ${describeRedis(connection.redis)} · gateway ${watch.observation.ledger?.gateway ?? 'not known'}`,
    };
  };
  const context = new PageContext(ledger, files, explorers, site);
  const router = Router();
  router.use('/board/api', respondInTime(watch, respondJson));
  router.use('/board', boardHeaders, createBoard(ledger, queues));
  const respondWithoutRedis: RespondWithoutRedis = (request, response, observation) => {
    response.send(unavailablePage(site(request), observation));
  };
  router.use(respondInTime(watch, respondWithoutRedis));
  router.get('/', (request, response) => {
    response.redirect(`${request.baseUrl}/overview`);
  });
  router.use(createFindPages(context));
  router.use(createControlPages(context));
  router.get('/overview', createOverview(watch, reader, context));
  router.get('/diagnostics', createDiagnostics(watch, context));
  router.use((request, response) => {
    context.notFound(request, response, 'Page not found.');
  });
  router.use(respondToLostRedis(watch, respondWithoutRedis), respondToError(site, logger));
  return { platformId: connection.platformId, watch, reader, router };
}

/** Bull Board's scripts expect this form. */
const respondJson: RespondWithoutRedis = (_, response) => {
  const message = 'Redis does not respond';
  response.json({ error: message, message });
};
