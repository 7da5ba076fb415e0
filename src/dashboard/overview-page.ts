import type { AccountStats } from '../ledger/account-stats.js';
import type { Payout } from '../ledger/payout.js';
import type { SenderLife } from '../ledger/watch-heartbeat.js';
import { STATE_MEANING, URGENT_STATES, type PayoutState } from '../ledger/states.js';
import { formatState } from '../format.js';
import { accountStatus, stateTiles } from './account-view.js';
import { html, type Html } from './html.js';
import { layout, type Site } from './layout.js';
import { payoutTable } from './payout-table.js';
import type { Shown } from './shown.js';
import { utcTime } from './time.js';

export interface Overview {
  readonly stats: AccountStats;
  readonly life: SenderLife;
  /** The first payouts of each urgent state. */
  readonly listed: ReadonlyMap<PayoutState, readonly Payout[]>;
  readonly shown: Shown;
}

/** The account at a glance. */
export function overviewPage(site: Site, { stats, life, listed, shown }: Overview): string {
  const sections = URGENT_STATES.flatMap((state) => {
    const payouts = listed.get(state) ?? [];
    return payouts.length > 0 ? [listSection(site, state, payouts, { count: stats[state], shown })] : [];
  });
  return layout(
    site,
    { title: 'Overview', current: 'overview' },
    html`<div class="heading">
        <h1>Overview</h1>
        <p class="quiet">
          as of ${utcTime(new Date(shown.wallNow).toISOString())} · <a href="${site.base}/payouts">Refresh</a>
        </p>
      </div>
      ${stateTiles(site, stats)} ${accountStatus(stats, life)}
      ${sections.length > 0 ? sections : html`<p class="card calm">No payout needs an operator.</p>`}`,
  );
}

function listSection(
  site: Site,
  state: PayoutState,
  payouts: readonly Payout[],
  { count, shown }: { readonly count: number; readonly shown: Shown },
): Html {
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
