import type { RequestHandler } from 'express';
import { formatAmount, formatDuration, formatState } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import { OPERATOR_STATES, PAYOUT_STATES, type PayoutState, STATE_MEANING, STATE_TONE } from '../../ledger/states.js';
import { html, type Html } from '../layout/html.js';
import { layout, PULSE_PAGE, type Site } from '../layout/layout.js';
import type { PageContext } from '../page-context.js';
import type { AccountPoller, Observation } from '../../operator/account-poller.js';
import { cameBackSection } from './came-back-section.js';
import { picturesSection, type Range } from './charts.js';
import { describePace, figuresSection } from './figures.js';
import { accountHeadline } from '../../operator/account-headline.js';
import { needsSection } from './needs-section.js';
import { headlineFacts, type Overview, type OverviewReader } from './overview.js';
import { pulseCard } from './pulse-card.js';

export function createOverview(watch: AccountPoller, reader: OverviewReader, context: PageContext): RequestHandler {
  return async (request, response) => {
    const [observation, overview] = await Promise.all([watch.visitSender(), reader.read()]);
    const range: Range = request.query['range'] === 'day' ? 'day' : 'hour';
    response.send(overviewPage(context.site(request), overview, observation, range, context.explorers));
  };
}

function overviewPage(
  site: Site,
  overview: Overview,
  observation: Observation,
  range: Range,
  explorers: PageContext['explorers'],
): string {
  const { stats, statistics, gateway, wallNow } = overview;
  const lastSendAgoMs = statistics.lastSendAt === undefined ? undefined : Math.max(0, wallNow - statistics.lastSendAt);
  const pulse = accountHeadline(observation, headlineFacts(overview));
  const pace = describePace(overview, pulse.tone === 'bad' ? pulse.headline : undefined);
  const shown = { currencies: gateway.currencies, explorers, wallNow };
  return layout(
    site,
    { title: pulse.headline, current: 'overview', ...PULSE_PAGE },
    html`${pulseCard(site, pulse, observation, { stats, isSigned: site.isSigned ?? false, lastSendAgoMs, pace: [pace.rate, pace.end].filter((text) => text !== undefined) })}
    ${overview.cameBack && cameBackSection(site, overview.cameBack)} ${stateTiles(site, stats)}
    ${needsSection(site, overview, shown)} ${figuresSection(site, { ...overview, pace })}
    ${picturesSection(statistics, stats.queued, range, `${site.base}/overview`, wallNow)}`,
  );
}

export function stateTiles({ base }: Site, stats: AccountStats, shown?: PayoutState): Html {
  return html`<nav class="tiles" aria-label="States">
    ${PAYOUT_STATES.map((state) => tile(base, stats, state, shown))}
  </nav>`;
}

function tile(base: string, stats: AccountStats, state: PayoutState, shown: PayoutState | undefined): Html {
  const count = stats[state];
  const ages: Partial<Record<PayoutState, number | null>> = stats.oldestAgeMs;
  const oldest = ages[state] ?? null;
  const urgent = OPERATOR_STATES.includes(state) && count > 0 ? 'urgent' : '';
  return html`<a
    class="tile tone-${STATE_TONE[state]} ${urgent}"
    href="${base}/payouts?state=${state}"
    title="${STATE_MEANING[state]}"
    aria-current="${state === shown ? 'true' : 'false'}"
  >
    <b>${formatAmount(count)}</b> <span>${formatState(state)}</span>
    ${oldest === null ? undefined : html`<small>oldest ${formatDuration(oldest)}</small>`}
  </a>`;
}
