import { Router, type Request } from 'express';
import { within } from '../clock.js';
import { RedisUnavailableError } from '../errors.js';
import type { Logger } from '../logger.js';
import type { ShownAccount } from './account-routes.js';
import { accountsPage, type AccountAtAGlance } from './accounts-page.js';
import { messagePage } from './message-page.js';
import type { Overview } from './overview/overview.js';
import { judgePulse } from './pulse/judge-pulse.js';
import { respondToError } from './respond-to-error.js';
import type { DashboardSite } from './site.js';

/** As for a page of one account: the page has to respond within a second. */
const RESPOND_WITHIN_MS = 900;

/** The pages over all accounts of a dashboard that shows several. */
export function createAccountsPages(accounts: readonly ShownAccount[], logger: Logger): Router {
  const platformIds = accounts.map(({ platformId }) => platformId);
  const site = ({ baseUrl }: Request): DashboardSite => ({ root: baseUrl, platformIds });
  const router = Router();
  router.get(['/', '/payouts'], (request, response) => {
    response.redirect(`${request.baseUrl}/accounts`);
  });
  router.get('/accounts', async (request, response) => {
    response.send(accountsPage(site(request), await Promise.all(accounts.map(glance))));
  });
  router.use((request, response) => {
    response.status(404).send(messagePage(site(request), { title: 'Not found', text: 'Page not found.' }));
  });
  router.use(respondToError(site, logger));
  return router;
}

/** What is known of an account within the time. */
async function glance({ platformId, watch, reader }: ShownAccount): Promise<AccountAtAGlance> {
  const startedAt = performance.now();
  const observation = await watch.visitSender();
  const isUp = observation.redis.kind === 'up';
  const leftMs = Math.max(0, RESPOND_WITHIN_MS - (performance.now() - startedAt));
  const overview = isUp
    ? await within(Math.max(leftMs, RESPOND_WITHIN_MS / 2), readOrNothing(reader.read()))
    : undefined;
  return { platformId, pulse: judgePulse(watch.observation, overview?.gateway), overview };
}

async function readOrNothing(reading: Promise<Overview>): Promise<Overview | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  }
}
