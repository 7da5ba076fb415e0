import { formatCount } from '../../format.js';
import type { PolicyReport } from '../../ledger/policy-report.js';
import type { Payout } from '../../ledger/payout.js';
import type { WhoSaid } from '../control/who-said.js';
import { html, type Html } from '../html.js';
import { layout, type Site } from '../layout.js';
import type { Shown } from '../shown.js';
import type { HeldPage } from './find-held.js';
import { heldItem } from './held-item.js';
import { heldPath, isFiltered, type HeldFilter, type HeldQuery } from './held-query.js';
import { holdName } from './hold-names.js';

export interface HeldList {
  readonly query: HeldQuery;
  readonly page: HeldPage;
  /** All that are held. */
  readonly total: number;
  /** What the worker counted by rule; undefined where none told. */
  readonly report: PolicyReport | undefined;
  readonly whoSaid: (payout: Payout) => WhoSaid;
}

/** What is held, by what holds it: why, until when, who has approved it, and what frees it. */
export function heldPage(site: Site, list: HeldList, shown: Shown): string {
  const { query, page, total, whoSaid } = list;
  return layout(
    site,
    { title: 'Held payouts', current: 'held' },
    html`<div class="heading">
        <h1>Held</h1>
        <p class="quiet">${formatCount(total, 'payout')} not sent, and why · the first one held at the top</p>
      </div>
      ${total === 0 ? undefined : groups(site, list)}
      <section class="list" aria-label="Held payouts">
        ${page.unreadable.map((message) => html`<p class="card bad"><bdi>${message}</bdi></p>`)}
        ${
          page.payouts.length === 0
            ? html`<p class="card calm">${nothingText(query, page, total)}</p>`
            : html`<ol class="holds">
                ${page.payouts.map((payout) => heldItem(site, payout, whoSaid(payout), shown))}
              </ol>`
        }
        ${pager(site, query, page)}
      </section>`,
  );
}

/** Each kind of hold, as a link to those it holds. The worker counts what its policy holds, and nobody the others. */
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

function pager({ base }: Site, { filter, after }: HeldQuery, { payouts, next, searched }: HeldPage): Html {
  const isSearch = next !== undefined && isFiltered(filter) && payouts.length < searched;
  return html`<nav class="more" aria-label="Pages">
    ${isSearch ? html`<span class="quiet">${formatCount(searched, 'payout')} searched for this page, more to search.</span>` : undefined}
    ${after === undefined ? undefined : html`<a href="${base}${heldPath(filter)}">First page</a>`}
    ${next === undefined ? undefined : html`<a href="${base}${heldPath(filter, next)}" rel="next">Next page</a>`}
  </nav>`;
}
