import { formatState, formatTimeUtc } from '../../format.js';
import type { Payout } from '../../ledger/payout.js';
import { STATE_MEANING, URGENT_STATES, type PayoutState } from '../../ledger/states.js';
import { stateTiles } from '../account-view.js';
import { picturesSection } from '../charts/pictures-section.js';
import type { Range } from '../charts/time-slots.js';
import { html, type Html } from '../html.js';
import { layout } from '../layout.js';
import { payoutTable } from '../payout-table.js';
import type { Observation } from '../pulse/account-watch.js';
import type { Pulse } from '../pulse/judge-pulse.js';
import type { Site } from '../site.js';
import { figuresSection } from './figures.js';
import { needsSection } from './needs-section.js';
import type { Overview } from './overview.js';
import { adviceCards, pulseCard } from './pulse-card.js';
import { workersSection } from './workers-section.js';

/** The account at a glance: whether money moves, what needs an operator, how fast it goes. */
export function overviewPage(
  site: Site,
  overview: Overview,
  { pulse, observation, range }: { readonly pulse: Pulse; readonly observation: Observation; readonly range: Range },
): string {
  const { stats, statistics, listed, wallNow } = overview;
  const lastSendAgoMs = statistics.lastSendAt === undefined ? undefined : Math.max(0, wallNow - statistics.lastSendAt);
  return layout(
    site,
    { title: pulse.headline, isLive: true },
    html`${pulseCard(pulse, observation, lastSendAgoMs)} ${adviceCards(stats)} ${figuresSection(overview)}
      ${needsSection(site, overview)} ${picturesSection(statistics, { range, path: `${site.base}/payouts`, wallNow })}
      ${stateTiles(site, stats)} ${observation.ledger === undefined ? undefined : workersSection(observation.ledger)}
      ${URGENT_STATES.map((state) => listSection(site, state, listed.get(state) ?? [], overview))}
      <p class="quiet as-of">as of ${formatTimeUtc(new Date(wallNow).toISOString())}</p>`,
  );
}

function listSection(site: Site, state: PayoutState, payouts: readonly Payout[], { stats, wallNow }: Overview): Html {
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
    ${payoutTable(site, payouts, wallNow)} ${more}
  </section>`;
}
