import { formatAmount, formatCount } from '../../base/format.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import type { WhoSaid } from '../control/payout-control.js';
import { isRejectedByPerson } from '../../operator/next-steps.js';
import { html, type Html } from '../layout/html.js';
import { layout, selectableRefreshMs, type Site } from '../layout/layout.js';
import { ADDRESS, AGE, AMOUNT, type Column, COMMENT, payoutTable, REFERENCE } from '../layout/payout-table.js';
import { heading, pager, type Shown, storedTime, usdWorth } from '../layout/pieces.js';
import { type Picked, selectable } from '../layout/selection.js';
import { type HeldFilter, type HeldPage, heldPath, type HeldQuery, isFiltered } from './held-query.js';

interface HeldList {
  readonly query: HeldQuery;
  readonly page: HeldPage;
  readonly total: number;
  readonly report: PolicyReport | undefined;
  readonly whoSaid: (payout: Payout) => WhoSaid;
  readonly picked: Picked | undefined;
}

export function heldPage(site: Site, list: HeldList, shown: Shown): string {
  const { query, page, total, whoSaid, picked } = list;
  const { payouts, unreadable } = page;
  const refreshMs = selectableRefreshMs(picked !== undefined, page.searched);
  return layout(
    site,
    {
      title: 'Held payouts',
      current: 'held',
      refreshMs,
      hasForm: true,
    },
    html`${heading('Held', `${formatCount(total, 'payout')} not sent, and why · the first one held at the top`)}
    ${total === 0 ? undefined : groups(site, list)}
    ${unreadable.map((message) => html`<p class="card bad"><bdi>${message}</bdi></p>`)}
    ${
      payouts.length === 0
        ? html`<p class="card quiet">${nothingText(query, page, total)}</p>`
        : selectable(site, heldPath(query.filter, query.after), payouts, picked, (ids) =>
            payoutTable(site, payouts, shown, { caption: 'Held payouts', columns: columnsOf(whoSaid), picked: ids }),
          )
    }
    ${pagerOf(site, query, page)}`,
  );
}

function columnsOf(whoSaid: HeldList['whoSaid']): readonly Column[] {
  return [
    AMOUNT,
    { title: 'Held by', cell: ({ held }) => holdName(held) },
    // Whole: what is missing stands at its end.
    { title: 'Why', className: 'wraps', cell: ({ held }) => html`<bdi>${held?.message ?? 'not known'}</bdi>` },
    { title: 'To be sent, it needs', cell: neededFor },
    { title: 'Who said what', cell: (payout) => describeSaid(whoSaid(payout)) },
    COMMENT,
    { title: 'Until', cell: ({ held }) => held?.until && storedTime(held.until) },
    ADDRESS,
    REFERENCE,
    { title: 'Worth', className: 'number', cell: worthOf },
    AGE,
  ];
}

const worthOf: Column['cell'] = ({ amount, paymentId, symbol }, { currencies }) => {
  if (symbol !== undefined) return `not known: in ${symbol}?`;
  const worth = usdWorth(amount, paymentId, currencies);
  return worth === undefined ? undefined : html`<span class="quiet">${worth}</span>`;
};

function neededFor(payout: Payout): Html {
  const { needs, kind, reason } = payout.held ?? {};
  if (isRejectedByPerson(payout)) return html`nothing: a person rejected it, so cancel it`;
  if (needs !== undefined)
    return html`<bdi
      >${needs.persons} more ${needs.persons === 1 ? 'person' : 'people'} of ${needs.by} to approve it</bdi
    >`;
  if (kind === 'rejection') return html`the person who rejected it to take that back`;
  if (kind === 'person') return html`a release, once the person who holds it says so`;
  if (kind !== 'policy') return html`a release, once the cause is gone`;
  return reason === 'wait' ? html`nothing: it is sent when there is room` : html`a change of the policy`;
}

function describeSaid({ approvedBy, rejectedBy, refused, unverified }: WhoSaid): string | undefined {
  const said = [
    ...approvedBy.map((person) => `${person} approved`),
    ...rejectedBy.map((person) => `${person} rejected`),
    ...refused.map(({ by, message }) => `key ${by} does not count: ${message}`),
    ...unverified.map((key) => `key ${key}: not verified, this dashboard has no keyring`),
  ];
  return said.length === 0 ? undefined : said.join(' · ');
}

/** Each kind of hold, as a link. Counts exist only for the policy's holds, from the worker. */
function groups({ base }: Site, { query: { filter }, total, report }: HeldList): Html {
  const byRule = (report?.held ?? []).map(({ rule, reason, count }) => {
    const group = { kind: 'policy', rule, reason } as const;
    return { group, text: `${holdName(group)} (${formatAmount(count)})` };
  });
  const kinds = (['policy', 'rejection', 'person', 'signature', 'journal'] as const).map((kind) => ({
    group: { kind },
    text: holdName({ kind }),
  }));
  const links: readonly { readonly group: HeldFilter; readonly text: string }[] = [
    { group: {}, text: `all (${formatAmount(total)})` },
    ...byRule,
    ...kinds,
  ];
  return html`<nav class="groups" aria-label="Held by">
    ${links.map(
      ({ group, text }) =>
        html`<a href="${base}${heldPath(group)}" aria-current="${isSame(group, filter) ? 'true' : 'false'}"
          ><bdi>${text}</bdi></a
        > `,
    )}
  </nav>`;
}

function isSame(one: HeldFilter, other: HeldFilter): boolean {
  return one.kind === other.kind && one.reason === other.reason && one.rule === other.rule;
}

function nothingText({ filter, after }: HeldQuery, { next }: HeldPage, total: number): string {
  if (next !== undefined) return 'None found so far.';
  if (total === 0) return 'Nothing is held.';
  if (isFiltered(filter)) return 'No payout is held by this.';
  return after === undefined ? 'Nothing is held.' : 'No more payouts are held.';
}

function pagerOf({ base }: Site, { filter, after }: HeldQuery, { payouts, next, searched }: HeldPage): Html {
  const isSearch = next !== undefined && isFiltered(filter) && payouts.length < searched;
  const text = `${formatCount(searched, 'payout')} searched for this page, more to search.`;
  const first = after && `${base}${heldPath(filter)}`;
  const before = isSearch ? [html`<span class="quiet">${text}</span>`] : [];
  return pager(first, next && `${base}${heldPath(filter, next)}`, 'Next page', before);
}

const VERDICTS: Readonly<Record<string, string>> = {
  approve: 'needs approval',
  wait: 'waits',
  refuse: 'refuses',
};

const KINDS: Readonly<Record<string, string>> = {
  signature: 'signature',
  journal: 'send journal',
  policy: 'policy',
  person: 'person',
};

/** A hold in a few words: `four-eyes: needs approval`, `signature: expired`. */
function holdName(held: Partial<Pick<HeldFor, 'kind' | 'reason' | 'rule'>> | undefined): string {
  const { kind, reason, rule } = held ?? {};
  const what = rule ?? (kind === undefined ? undefined : (KINDS[kind] ?? kind));
  const why = reason === undefined ? undefined : (VERDICTS[reason] ?? reason.replaceAll('_', ' '));
  return [what, why].filter((part) => part !== undefined).join(': ') || 'held';
}
