import { formatState } from '../format.js';
import type { AccountStats } from '../ledger/account-stats.js';
import type { PayoutPage } from '../ledger/payout-queries.js';
import { FINAL_STATES, STATE_MEANING, type PayoutState } from '../ledger/states.js';
import { stateTiles } from './account-view.js';
import { html, type Html } from './html.js';
import { layout, type Site } from './layout.js';
import { payoutTable, stateBadge } from './payout-table.js';

export interface StateList {
  readonly stats: AccountStats;
  readonly state: PayoutState;
  readonly page: PayoutPage;
  /** Whether this is the first page of the list. */
  readonly isFirst: boolean;
  /** Wall clock, ms. */
  readonly wallNow: number;
}

/** Final payouts are listed newest first; of the others, the one that waits longest matters most. */
export function isNewestFirst(state: PayoutState): boolean {
  return FINAL_STATES.includes(state);
}

/** The payouts of one state, page by page. */
export function statePage(site: Site, { stats, state, page, isFirst, wallNow }: StateList): string {
  const order = isNewestFirst(state) ? 'newest first' : 'oldest first';
  return layout(
    site,
    { title: formatState(state) },
    html`<div class="heading">
        <h1>${stateBadge(state)}</h1>
        <p class="quiet">${STATE_MEANING[state]} · ${order}</p>
      </div>
      ${stateTiles(site, stats, state)}
      <section class="list">
        ${
          page.payouts.length > 0
            ? payoutTable(site, page.payouts, wallNow)
            : html`<p class="card calm">No ${isFirst ? '' : 'more '}payouts are ${formatState(state)}.</p>`
        }
        ${pager(`${site.base}/payouts?state=${state}`, isFirst, page.next)}
      </section>`,
  );
}

function pager(href: string, isFirst: boolean, next: string | undefined): Html | undefined {
  if (isFirst && next === undefined) return undefined;
  return html`<p class="more">
    ${isFirst ? undefined : html`<a href="${href}">First page</a>`}
    ${next === undefined ? undefined : html`<a href="${href}&after=${next}" rel="next">Next page</a>`}
  </p>`;
}
