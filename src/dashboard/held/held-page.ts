import { formatCount, formatMoney } from '../../base/format.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import { whatFrees } from '../../operator/next-steps.js';
import type { WhoSaid } from '../control/payout-control.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { payoutPath } from '../layout/payout-table.js';
import {
  commandLine,
  copyButton,
  dataList,
  heading,
  pager,
  relativeTime,
  type Shown,
  usdWorth,
  utcTime,
} from '../layout/pieces.js';
import { type HeldFilter, type HeldPage, heldPath, type HeldQuery, isFiltered } from './held-query.js';

interface HeldList {
  readonly query: HeldQuery;
  readonly page: HeldPage;
  readonly total: number;
  readonly report: PolicyReport | undefined;
  readonly whoSaid: (payout: Payout) => WhoSaid;
}

export function heldPage(site: Site, list: HeldList, shown: Shown): string {
  const { query, page, total, whoSaid } = list;
  return layout(
    site,
    { title: 'Held payouts', current: 'held' },
    html`${heading('Held', `${formatCount(total, 'payout')} not sent, and why · the first one held at the top`)}
      ${total === 0 ? undefined : groups(site, list)}
      <section class="list" aria-label="Held payouts">
        ${page.unreadable.map((message) => html`<p class="card bad"><bdi>${message}</bdi></p>`)}
        ${
          page.payouts.length === 0
            ? html`<p class="card quiet">${nothingText(query, page, total)}</p>`
            : html`<ol class="holds">
                ${page.payouts.map((payout) => heldItem(site, payout, whoSaid(payout), shown))}
              </ol>`
        }
        ${pagerOf(site, query, page)}
      </section>`,
  );
}

/** Each kind of hold, as a link. Counts exist only for the policy's holds, from the worker. */
function groups({ base }: Site, { query: { filter }, total, report }: HeldList): Html {
  const byRule = (report?.held ?? []).map(({ rule, reason, count }) => {
    const group = { kind: 'policy', rule, reason } as const;
    return { group, text: `${holdName(group)} (${count})` };
  });
  const kinds = (['policy', 'signature', 'journal'] as const).map((kind) => ({
    group: { kind },
    text: holdName({ kind }),
  }));
  const links: readonly { readonly group: HeldFilter; readonly text: string }[] = [
    { group: {}, text: `all (${total})` },
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

function heldItem(site: Site, payout: Payout, said: WhoSaid, { currencies, wallNow }: Shown): Html {
  const { payoutId, amount, paymentId, addressTo, reference, held, updatedAt } = payout;
  const { when, command } = whatFrees(payout, site.platformId, site);
  const worth = usdWorth(amount, paymentId, currencies);
  const until = held?.until;
  const rows: Parameters<typeof dataList>[0] = [
    [
      'Amount',
      html`<strong>${formatMoney(amount, paymentId, currencies)}</strong> <span class="quiet">${worth}</span>`,
    ],
    ['To', html`<bdi class="mono">${addressTo}</bdi>${copyButton(addressTo, `address of ${payoutId}`)}`],
    ['Reference', reference],
    ['Why', held?.message ?? 'not known'],
    [
      'Until',
      isTime(until) ? html`${utcTime(until)} <span class="quiet">(${relativeTime(until, wallNow)})</span>` : undefined,
    ],
    ['Held for', relativeTime(updatedAt, wallNow)],
    ['Approved by', approvedBy(payout, said)],
    ['Rejected by', said.rejectedBy.join(', ') || undefined],
    ['Does not count', doesNotCount(said)],
    ['What frees it', html`${when}${command && commandLine(command)}`],
  ];
  return html`<li class="card" data-key="${payoutId}">
    <h2><a class="mono" href="${site.base}${payoutPath(payoutId)}">${payoutId}</a></h2>
    <p class="quiet"><bdi>${holdName(held)}</bdi></p>
    ${dataList(rows)}
  </li>`;
}

/** Redis may hold any text in place of a time. */
function isTime(text: string | undefined): text is string {
  return text !== undefined && !Number.isNaN(Date.parse(text));
}

function approvedBy({ held }: Payout, { approvedBy: persons, unverified }: WhoSaid): Html | undefined {
  const needs = held?.needs;
  if (needs === undefined && persons.length === 0 && unverified.length === 0) return undefined;
  const missing = needs && `${needs.persons} more ${needs.persons === 1 ? 'person' : 'people'} of ${needs.by} needed`;
  const keys = unverified.length === 0 ? undefined : `said by ${unverified.join(', ')}, not verified: no keyring here`;
  return html`<bdi>${persons.length === 0 ? 'nobody so far' : persons.join(', ')}</bdi>
    <span class="quiet"><bdi>${[missing, keys].filter((part) => part !== undefined).join(' · ')}</bdi></span>`;
}

function doesNotCount({ refused }: WhoSaid): Html | undefined {
  if (refused.length === 0) return undefined;
  return html`${refused.map(({ by, message }) => html`<span class="line"><bdi>key ${by}: ${message}</bdi></span>`)}`;
}

const VERDICTS: Readonly<Record<string, string>> = {
  approve: 'needs approval',
  wait: 'waits',
  refuse: 'held until the policy changes',
};

const KINDS: Readonly<Record<string, string>> = {
  signature: 'signature',
  journal: 'send journal',
  policy: 'policy',
};

/** A hold in a few words: `four-eyes: needs approval`, `signature: expired`. */
function holdName(held: Partial<Pick<HeldFor, 'kind' | 'reason' | 'rule'>> | undefined): string {
  const { kind, reason, rule } = held ?? {};
  const what = rule ?? (kind === undefined ? undefined : (KINDS[kind] ?? kind));
  const why = reason === undefined ? undefined : (VERDICTS[reason] ?? reason.replaceAll('_', ' '));
  return [what, why].filter((part) => part !== undefined).join(': ') || 'held';
}
