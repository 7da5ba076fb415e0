import type { RequestHandler } from 'express';
import { formatDuration, formatState } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import type { Payout } from '../../ledger/payout.js';
import {
  OPERATOR_STATES,
  PAYOUT_STATES,
  type PayoutState,
  STATE_MEANING,
  STATE_TONE,
  URGENT_STATES,
} from '../../ledger/states.js';
import { html, type Html } from '../layout/html.js';
import { layout, PULSE_PAGE, type Site } from '../layout/layout.js';
import { payoutTable } from '../layout/payout-table.js';
import { type Shown, utcTime } from '../layout/pieces.js';
import type { PageContext } from '../page-context.js';
import type { AccountPoller, Observation } from '../../operator/account-poller.js';
import { picturesSection, type Range } from './charts.js';
import { describePace, figuresSection } from './figures.js';
import { accountHeadline } from '../../operator/account-headline.js';
import { needsSection } from './needs-section.js';
import { headlineFacts, type Overview, type OverviewReader } from './overview.js';
import { pulseCard, workersSection } from './pulse-card.js';

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
  const { stats, statistics, gateway, listed, wallNow } = overview;
  const lastSendAgoMs = statistics.lastSendAt === undefined ? undefined : Math.max(0, wallNow - statistics.lastSendAt);
  const pulse = accountHeadline(observation, headlineFacts(overview));
  const isMoving = pulse.tone !== 'bad';
  const { rate, end } = describePace({ ...overview, isMoving });
  const shown = { currencies: gateway.currencies, explorers, wallNow };
  return layout(
    site,
    { title: pulse.headline, current: 'overview', ...PULSE_PAGE },
    html`${pulseCard(pulse, observation, { stats, isSigned: site.isSigned ?? false, lastSendAgoMs, pace: [rate, end].filter((text) => text !== undefined) })}
      ${figuresSection({ ...overview, isMoving })} ${needsSection(site, overview)}
      ${picturesSection(statistics, range, `${site.base}/payouts`, wallNow)} ${stateTiles(site, stats)}
      ${observation.ledger === undefined ? undefined : workersSection(observation.ledger)}
      ${URGENT_STATES.map((state) => listSection(site, state, listed.get(state) ?? [], stats, shown))}
      <p class="quiet as-of">as of ${utcTime(new Date(wallNow).toISOString())}</p>`,
  );
}

function listSection(
  site: Site,
  state: PayoutState,
  payouts: readonly Payout[],
  stats: AccountStats,
  shown: Shown,
): Html {
  if (payouts.length === 0) return html``;
  const count = stats[state];
  const more =
    count > payouts.length
      ? html`<p class="more">
          <a href="${site.base}/payouts?state=${state}">All ${count} ${formatState(state)} payouts</a>
        </p>`
      : undefined;
  return html`<section class="list">
    <h2>${formatState(state)} <span class="quiet">${STATE_MEANING[state]}</span></h2>
    ${payoutTable(site, payouts, shown, `Payouts ${formatState(state)}`)} ${more}
  </section>`;
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
    <b>${count}</b> <span>${formatState(state)}</span>
    ${oldest === null ? undefined : html`<small>oldest ${formatDuration(oldest)}</small>`}
  </a>`;
}
