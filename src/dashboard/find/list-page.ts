import { formatCount, formatState } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import { STATE_MEANING } from '../../ledger/states.js';
import { stateTiles } from '../account-view.js';
import { html, type Html } from '../html.js';
import { layout, type Site } from '../layout.js';
import { payoutTable, stateBadge } from '../payout-table.js';
import type { Shown } from '../shown.js';
import { batchPath } from './batch-path.js';
import { findForm } from './find-form.js';
import { isNewestFirst, LISTED_ON_PAGE, type ListedPayouts } from './find-listed.js';
import { csvPath, isIndex, listPath, type ListField, type ListQuery } from './list-query.js';

export interface PayoutList {
  readonly query: ListQuery;
  readonly listed: ListedPayouts;
  readonly stats: AccountStats;
  /** The text of the search field that led here. */
  readonly search?: string | undefined;
}

/** Payouts of a state, of a batch, or of any filter, page by page. */
export function listPage(site: Site, list: PayoutList, shown: Shown): string {
  const { query, listed, stats, search } = list;
  const { state, batch } = query.filter;
  const title = titleOf(query);
  return layout(
    site,
    { title, search: search ?? '', current: 'list' },
    html`<div class="heading">
        <h1>${isIndex(query) && state !== undefined ? stateBadge(state) : title}</h1>
        <p class="quiet">${describeOrder(query)}</p>
      </div>
      ${search === undefined ? undefined : otherMeanings(site, query, search)}
      ${Object.keys(query.texts).every((field) => field === 'state') ? html`<div class="listing">${stateTiles(site, stats, state)}</div>` : undefined}
      ${findForm(site, query, search !== undefined)}
      <section class="list" aria-label="Payouts">
        ${batch === undefined ? undefined : html`<p class="above"><a href="${site.base}${batchPath(batch)}">Progress and sums of batch ${batch}</a></p>`}
        ${
          listed.payouts.length > 0
            ? payoutTable(site, listed.payouts, shown, title)
            : html`<p class="card calm">${nothingText(query, listed)}</p>`
        }
        ${pager(site, query, listed)}
      </section>`,
  );
}

const NAMES: Readonly<Record<ListField, string>> = {
  state: 'state',
  batch: 'batch',
  address: 'address',
  reference: 'reference',
  amount: 'amount',
  since: 'from',
  until: 'until',
};

function titleOf({ texts }: ListQuery): string {
  const { state, ...others } = texts;
  const filters = Object.entries(others).map(([field, text]) => `${NAMES[field as ListField]} ${text}`);
  const kind = state === undefined ? 'Payouts' : `Payouts ${formatState(state)}`;
  return [kind, ...filters].join(', ');
}

function describeOrder(query: ListQuery): string {
  const { state } = query.filter;
  if (!isIndex(query)) return 'last changed first';
  if (state === undefined) return 'in the order of acceptance';
  return `${STATE_MEANING[state]} · ${isNewestFirst(state) ? 'newest first' : 'oldest first'}`;
}

function nothingText({ after, texts, problems }: ListQuery, { next }: ListedPayouts): string {
  if (Object.keys(problems).length > 0) return 'Correct what is marked in the filter.';
  if (next !== undefined) return 'None found so far.';
  const more = after === undefined ? '' : 'more ';
  const isOfState = texts.state !== undefined && Object.keys(texts).length === 1;
  return isOfState ? `No ${more}payouts are ${formatState(texts.state ?? '')}.` : `No ${more}payouts found.`;
}

/** What the text in the search field may have meant instead. */
function otherMeanings({ base }: Site, { texts }: ListQuery, search: string): Html {
  const meanings: readonly ListField[] = ['reference', 'address', 'amount', 'batch'];
  const others = meanings.filter((field) => !(field in texts));
  const [taken = 'reference'] = Object.keys(texts) as ListField[];
  const name = taken === 'since' ? 'day of the last change' : NAMES[taken];
  return html`<p class="above">
    No payout, txhash or batch is called “<bdi>${search}</bdi>”; searched as ${name}. Search as
    ${others.map((field, index) => html`${index === 0 ? '' : ', '}<a href="${base}${listPath({ [field]: search })}">${NAMES[field]}</a>`)}
  </p>`;
}

function pager({ base }: Site, { texts, after }: ListQuery, { payouts, next, searched }: ListedPayouts): Html {
  const read =
    next === undefined || searched === undefined || payouts.length === LISTED_ON_PAGE
      ? undefined
      : `${formatCount(searched, 'payout')} searched for this page, more to search.`;
  return html`<nav class="more" aria-label="Pages">
    ${read === undefined ? undefined : html`<span class="quiet">${read}</span>`}
    ${payouts.length === 0 ? undefined : html`<a href="${base}${csvPath(texts)}" download>Download all as CSV</a>`}
    ${after === undefined ? undefined : html`<a href="${base}${listPath(texts)}">First page</a>`}
    ${next === undefined ? undefined : html`<a href="${base}${listPath(texts, next)}" rel="next">Next page</a>`}
  </nav>`;
}
