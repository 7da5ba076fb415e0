import { formatCount, formatState } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import { PAYOUT_STATES, STATE_MEANING } from '../../ledger/states.js';
import { html, type Html } from '../layout/html.js';
import { layout, selectableRefreshMs, type Site } from '../layout/layout.js';
import { batchPath, payoutTable, stateBadge, unreadableRows } from '../layout/payout-table.js';
import { heading, pager, type Shown } from '../layout/pieces.js';
import { type Picked, selectable } from '../layout/selection.js';
import { stateTiles } from '../overview/overview-page.js';
import {
  csvPath,
  isIndex,
  isNewestFirst,
  LISTED_ON_PAGE,
  type ListedPayouts,
  type ListField,
  listPath,
  type ListQuery,
} from './list-query.js';

interface PayoutList {
  readonly query: ListQuery;
  readonly listed: ListedPayouts;
  readonly stats: AccountStats;
  readonly search?: string | undefined;
  readonly picked: Picked | undefined;
}

export function listPage(site: Site, list: PayoutList, shown: Shown): string {
  const { query, listed, stats, search, picked } = list;
  const { state, batch } = query.filter;
  const title = titleOf(query);
  const isUsable = Object.keys(query.problems).length === 0;
  const refreshMs = isUsable ? selectableRefreshMs(picked !== undefined, listed.searched ?? 0) : undefined;
  return layout(
    site,
    { title, search: search ?? '', current: 'list', refreshMs, hasForm: true },
    html`${heading(isIndex(query) && state !== undefined ? stateBadge(state) : title, describeOrder(query))}
      ${search === undefined ? undefined : otherMeanings(site, query, search)}
      ${Object.keys(query.texts).every((field) => field === 'state') ? html`<div class="listing">${stateTiles(site, stats, state)}</div>` : undefined}
      ${findForm(site, query, search !== undefined)}
      <section class="list">
        ${batch !== undefined && html`<p class="above"><a href="${site.base}${batchPath(batch)}">Progress and sums of batch ${batch}</a></p>`}
        ${
          listed.payouts.length > 0
            ? selectable(site, listPath(query.texts, query.after), listed.payouts, picked, (ids) =>
                payoutTable(site, listed.payouts, shown, { caption: title, picked: ids }),
              )
            : listed.unreadable.length === 0 && html`<p class="card quiet">${nothingText(query, listed)}</p>`
        }
        ${unreadableRows(site, listed.unreadable)} ${pagerOf(site, query, listed)}
      </section>`,
  );
}

const NAMES: Readonly<Record<ListField, string>> = {
  id: 'payoutId',
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

function otherMeanings({ base }: Site, { texts }: ListQuery, search: string): Html {
  const meanings: readonly ListField[] = ['id', 'reference', 'address', 'amount', 'batch'];
  const others = meanings.filter((field) => !(field in texts));
  const [taken = 'reference'] = Object.keys(texts) as ListField[];
  const name =
    taken === 'since' ? 'day of the last change' : taken === 'id' ? 'the beginning of a payoutId' : NAMES[taken];
  return html`<p class="above">
    No payout, payment or batch is called “<bdi>${search}</bdi>”; searched as ${name}. Search as
    ${others.map((field, index) => html`${index === 0 ? '' : ', '}<a href="${base}${listPath({ [field]: search })}">${NAMES[field]}</a>`)}
  </p>`;
}

function pagerOf(
  { base }: Site,
  { texts, after }: ListQuery,
  { payouts, unreadable, next, searched }: ListedPayouts,
): Html {
  const read =
    next === undefined || searched === undefined || payouts.length + unreadable.length === LISTED_ON_PAGE
      ? undefined
      : `${formatCount(searched, 'payout')} searched for this page, more to search.`;
  const before = [
    ...(read === undefined ? [] : [html`<span class="quiet">${read}</span>`]),
    ...(payouts.length + unreadable.length === 0
      ? []
      : [html`<a href="${base}${csvPath(texts)}" download>Download all as CSV</a>`]),
  ];
  const first = after && `${base}${listPath(texts)}`;
  return pager(first, next && `${base}${listPath(texts, next)}`, 'Next page', before);
}

interface Input {
  readonly field: Exclude<ListField, 'state'>;
  readonly label: string;
  readonly type: 'text' | 'date';
  readonly hint: string;
}

const INPUTS: readonly Input[] = [
  { field: 'id', label: 'payoutId', type: 'text', hint: 'its beginning' },
  { field: 'address', label: 'Address', type: 'text', hint: 'whole; its tag may be left out' },
  { field: 'amount', label: 'Amount', type: 'text', hint: 'exact, such as 12.5' },
  { field: 'reference', label: 'Reference', type: 'text', hint: 'a part of it' },
  { field: 'batch', label: 'Batch', type: 'text', hint: 'its whole name' },
  { field: 'since', label: 'Changed from', type: 'date', hint: 'day in UTC' },
  { field: 'until', label: 'Changed until', type: 'date', hint: 'that day included' },
];

/**
 * The form that filters a list. It needs no script.
 * @param isSearch - whether a search led here: on a phone the form would hide the results
 */
function findForm({ base }: Site, { texts, problems }: Pick<ListQuery, 'texts' | 'problems'>, isSearch: boolean): Html {
  const isOpen = !isSearch && Object.keys(texts).some((field) => field !== 'state');
  return html`<details class="card filter" ${isOpen ? html`open` : undefined}>
    <summary>Filter <span class="quiet">by payoutId, address, amount, reference, batch, day</span></summary>
    <form action="${base}/payouts">
      ${stateSelect(texts.state)}
      ${INPUTS.map((input) => inputField(input, texts[input.field] ?? '', problems[input.field]))}
      <div class="buttons">
        <button class="primary">Show payouts</button>
        <a href="${base}/payouts">Clear</a>
      </div>
    </form>
  </details>`;
}

function stateSelect(shown: string | undefined): Html {
  const option = (state: string, text: string): Html =>
    html`<option value="${state}" ${state === shown ? html`selected` : undefined}>${text}</option>`;
  return html`<div class="field">
    <label for="find-state">State</label>
    <select id="find-state" name="state">
      ${option('', 'all')} ${PAYOUT_STATES.map((state) => option(state, formatState(state)))}
    </select>
  </div>`;
}

function inputField({ field, label, type, hint }: Input, value: string, problem: string | undefined): Html {
  const id = `find-${field}`;
  const invalid = problem === undefined ? undefined : html`aria-invalid="true"`;
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${field}"
      type="${type}"
      value="${value}"
      aria-describedby="${id}-hint"
      ${invalid}
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
    />
    <small id="${id}-hint" class="${problem === undefined ? 'quiet' : 'trouble'}">${problem ?? hint}</small>
  </div>`;
}
