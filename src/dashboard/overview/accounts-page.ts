import { type Request, Router } from 'express';
import { within } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import { formatAmount, formatDuration } from '../../base/format.js';
import { estimateEnd } from '../../ledger/reads/statistics.js';
import type { Logger } from '../../base/logger.js';
import type { ShownAccount } from '../account-routes.js';
import { html, type Html } from '../layout/html.js';
import { accountPath, type DashboardFrame, type DashboardSite, layout, PULSE_PAGE } from '../layout/layout.js';
import { tableCell, table } from '../layout/pieces.js';
import { messagePage, respondToError } from '../respond.js';
import { accountHeadline, type Headline } from '../../operator/account-headline.js';
import { countNeeds } from './needs-section.js';
import { headlineFacts, type Overview } from './overview.js';

/** A page must respond within a second. */
const RESPOND_WITHIN_MS = 900;

export function createAccountsPages(accounts: readonly ShownAccount[], frame: DashboardFrame, logger: Logger): Router {
  const site = ({ baseUrl }: Request): DashboardSite => ({ ...frame, root: baseUrl, now: Date.now() });
  const router = Router();
  router.get(['/', '/overview', '/payouts'], (request, response) => {
    response.redirect(`${request.baseUrl}/accounts`);
  });
  router.get('/accounts', async (request, response) => {
    response.send(
      accountsPage(site(request), await Promise.all(accounts.map(async (account) => glance(account, logger)))),
    );
  });
  router.use((request, response) => {
    response.status(404).send(messagePage(site(request), { title: 'Not found', text: 'Page not found.' }));
  });
  router.use(respondToError(site, logger));
  return router;
}

async function glance({ platformId, watch, reader }: ShownAccount, logger: Logger): Promise<AccountAtAGlance> {
  const startedAt = performance.now();
  const observation = await watch.visitSender();
  const isUp = observation.redis.kind === 'up';
  const leftMs = Math.max(0, RESPOND_WITHIN_MS - (performance.now() - startedAt));
  const overview = isUp
    ? await within(Math.max(leftMs, RESPOND_WITHIN_MS / 2), readOrNothing(reader.read(), platformId, logger))
    : undefined;
  return { platformId, pulse: accountHeadline(watch.observation, overview && headlineFacts(overview)), overview };
}

/** One account's trouble must not hide the others. */
async function readOrNothing(
  reading: Promise<Overview>,
  platformId: number,
  logger: Logger,
): Promise<Overview | undefined> {
  try {
    return await reading;
  } catch (error) {
    const isKnown = error instanceof RedisUnavailableError;
    if (!isKnown) logger.error({ platformId, error: (error as Error).message }, 'an account could not be read');
    return undefined;
  }
}

interface AccountAtAGlance {
  readonly platformId: number;
  readonly pulse: Headline;
  readonly overview: Overview | undefined;
}

function accountsPage(site: DashboardSite, accounts: readonly AccountAtAGlance[]): string {
  const rank = { bad: 0, warn: 1, good: 2 };
  const sorted = accounts.toSorted((one, other) => rank[one.pulse.tone] - rank[other.pulse.tone]);
  const title = describeTrouble(accounts) ?? 'All accounts';
  return layout(
    site,
    { title, ...PULSE_PAGE },
    html`<div class="heading"><h1 aria-live="polite">${title}</h1></div>
      ${table(
        'Accounts',
        ['Account', 'Pulse', '#Queued', '#In progress', '#Need an operator', '#Sends a minute'],
        sorted.map((account) => accountRow(site, account)),
      )}`,
  );
}

/** The one cause, if all accounts have the same. */
function describeTrouble(accounts: readonly AccountAtAGlance[]): string | undefined {
  const headlines = accounts.flatMap(({ pulse }) => (pulse.tone === 'bad' ? [pulse.headline] : []));
  if (headlines.length === 0) return undefined;
  const what = new Set(headlines).size === 1 ? headlines[0] : 'Nothing is sent';
  return `${what}: ${headlines.length} of ${accounts.length} accounts`;
}

function accountRow({ root, platformIds }: DashboardSite, { platformId, pulse, overview }: AccountAtAGlance): Html {
  const href = `${root}${accountPath(platformIds, platformId)}/overview`;
  return html`<tr data-key="${platformId}">
    <th scope="row"><a href="${href}">Account ${platformId}</a></th>
    ${tableCell('wraps', pulseView(pulse))}
    ${overview === undefined ? html`${tableCell('number quiet', 'not known')} ${[1, 2, 3].map(() => tableCell('number', undefined))}` : figures(overview, pulse.tone !== 'bad')}
  </tr>`;
}

function pulseView({ tone, headline, detail }: Headline): Html {
  return html`<strong class="${tone} ${tone === 'good' ? '' : 'trouble'}"
      ><span class="dot" aria-hidden="true"></span>${headline}</strong
    >
    ${detail !== undefined && html`<bdi class="quiet line">${detail}</bdi>`}`;
}

function figures(overview: Overview, isMoving: boolean): Html {
  const { stats, statistics, wallNow } = overview;
  const { ratePerMinute, endsAt } = estimateEnd(statistics, stats, wallNow);
  const need = countNeeds(overview);
  const end =
    !isMoving || endsAt === undefined || stats.queued === 0 ? undefined : `${formatDuration(endsAt - wallNow)} left`;
  return html`${tableCell('number', html`<b>${formatAmount(stats.queued)}</b> ${end && html`<small class="line">${end}</small>`}`)}
  ${tableCell('number', formatAmount(stats.in_progress))}
  ${tableCell(`number ${need > 0 ? 'trouble' : ''}`, formatAmount(need))}
  ${tableCell('number', ratePerMinute.toFixed(1))}`;
}
