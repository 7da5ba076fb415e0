import { formatState } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import type { Payout } from '../../ledger/payout.js';
import { STATE_MEANING, URGENT_STATES, type PayoutState } from '../../ledger/states.js';
import { stateTiles } from '../account-view.js';
import { picturesSection } from '../charts/pictures-section.js';
import type { Range } from '../charts/time-slots.js';
import { html, type Html } from '../html.js';
import { layout, PULSE_PAGE } from '../layout.js';
import { payoutTable } from '../payout-table.js';
import type { Observation } from '../pulse/account-watch.js';
import type { Pulse } from '../pulse/judge-pulse.js';
import type { Shown } from '../shown.js';
import type { Site } from '../site.js';
import { utcTime } from '../time.js';
import { describePace, figuresSection } from './figures.js';
import { needsSection } from './needs-section.js';
import type { Overview } from './overview.js';
import { pulseCard } from './pulse-card.js';
import { workersSection } from './workers-section.js';

/** What the first page shows beside the ledger's own figures. */
interface OverviewContext {
  readonly pulse: Pulse;
  readonly observation: Observation;
  readonly range: Range;
  readonly explorers: ReadonlyMap<number, string>;
}

/** The account at a glance: whether money moves, what needs an operator, how fast it goes. */
export function overviewPage(
  site: Site,
  overview: Overview,
  { pulse, observation, range, explorers }: OverviewContext,
): string {
  const { stats, statistics, gateway, listed, wallNow } = overview;
  const lastSendAgoMs = statistics.lastSendAt === undefined ? undefined : Math.max(0, wallNow - statistics.lastSendAt);
  const isMoving = pulse.tone !== 'bad';
  const { rate, end } = describePace({ ...overview, isMoving });
  const shown = { currencies: gateway.currencies, explorers, wallNow };
  return layout(
    site,
    { title: pulse.headline, current: 'overview', ...PULSE_PAGE },
    html`${pulseCard(pulse, observation, { stats, isSigned: site.isSigned ?? false, lastSendAgoMs, pace: [rate, end].filter((text) => text !== undefined) })}
      ${figuresSection({ ...overview, isMoving })} ${needsSection(site, overview)}
      ${picturesSection(statistics, { range, path: `${site.base}/payouts`, wallNow })} ${stateTiles(site, stats)}
      ${observation.ledger === undefined ? undefined : workersSection(observation.ledger)}
      ${URGENT_STATES.map((state) => listSection(site, state, { payouts: listed.get(state) ?? [], stats, shown }))}
      <p class="quiet as-of">as of ${utcTime(new Date(wallNow).toISOString())}</p>`,
  );
}

function listSection(
  site: Site,
  state: PayoutState,
  {
    payouts,
    stats,
    shown,
  }: { readonly payouts: readonly Payout[]; readonly stats: AccountStats; readonly shown: Shown },
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
