import { formatCount } from '../../base/format.js';
import type { ActGroup } from '../../ledger/reads/act-groups.js';
import { ACTIVITIES, type Activity } from '../../ledger/reads/activity.js';
import type { UnreadablePayout } from '../../ledger/payout-queries.js';
import type { Payout } from '../../ledger/payout.js';
import { html, type Html } from '../layout/html.js';
import { layout, LIST_REFRESH_MS, type Site } from '../layout/layout.js';
import { payoutPath, payoutTable, unreadableRows } from '../layout/payout-table.js';
import { heading, pager, type Shown, table, tableCell, textCell, utcTime } from '../layout/pieces.js';

interface ActivityList {
  readonly acts: readonly ActGroup[];
  readonly next: string | undefined;
  readonly isFirst: boolean;
}

export function activityPage(site: Site, { acts, next, isFirst }: ActivityList): string {
  const path = `${site.base}/activity`;
  return layout(
    site,
    { title: 'Activity', current: 'activity', refreshMs: LIST_REFRESH_MS },
    html`${heading('Activity', 'who did what, and why · newest first')}
    ${
      acts.length > 0
        ? activityTable(site, acts)
        : html`<p class="card quiet">
            ${next === undefined ? `Nothing ${isFirst ? 'was done by an operator so far' : 'more'}.` : 'Nothing among the events searched so far.'}
          </p>`
    }
    ${pager(isFirst ? undefined : path, next && `${path}?before=${encodeURIComponent(next)}`, 'Older')}`,
  );
}

function activityTable({ base }: Site, acts: readonly ActGroup[]): Html {
  return table(
    'What was done, newest first',
    ['Time', 'Who', 'What', 'Payouts', 'Why'],
    acts.map((act) => {
      const { at, by, key, what, reason } = act;
      const who = key === undefined ? by : `${by} (key ${key})`;
      return html`<tr data-key="${act.id ?? [at, by, what, act.payoutId].join(' ')}">
        ${tableCell('', utcTime(at))} ${textCell(who)} ${textCell(ACTIVITIES[what])}
        ${tableCell('', aboutWhat(base, act))} ${textCell(reason === '' ? undefined : reason)}
      </tr>`;
    }),
  );
}

function aboutWhat(base: string, { payoutId, count, id, source }: ActGroup): Html {
  if (payoutId !== undefined) return html`<a href="${base}${payoutPath(payoutId)}">${payoutId}</a>`;
  if (count === 0) return html`the account`;
  const text = formatCount(count, 'payout');
  const link = id === undefined ? html`${text}` : html`<a href="${base}${actPath(id)}">${text}</a>`;
  return html`${link}${source !== undefined && html` <span class="quiet">of <bdi>${source}</bdi></span>`}`;
}

/** Path below the account's pages. */
function actPath(id: string, offset = 0): string {
  return `/act?id=${id}${offset === 0 ? '' : `&offset=${offset}`}`;
}

interface ActList {
  readonly id: string;
  readonly act: Activity;
  readonly payouts: readonly Payout[];
  readonly unreadable: readonly UnreadablePayout[];
  readonly offset: number;
  readonly next: number | undefined;
}

/** The payouts of one act, as they are now. */
export function actPage(site: Site, { id, act, payouts, unreadable, offset, next }: ActList, shown: Shown): string {
  const { what, by, reason, source } = act;
  const why = [source && `of ${source}`, reason].filter((text) => text !== undefined && text !== '').join(' · ');
  return layout(
    site,
    { title: `${by}: ${ACTIVITIES[what]}`, current: 'activity', refreshMs: LIST_REFRESH_MS },
    html`${heading(html`<bdi>${by}</bdi> ${ACTIVITIES[what]}`, html`<bdi>${why}</bdi> · the payouts as they are now`)}
    ${
      payouts.length + unreadable.length > 0
        ? payoutTable(site, payouts, shown, { caption: 'The payouts of this act' })
        : html`<p class="card quiet">Their events, or they themselves, are no longer kept.</p>`
    }
    ${unreadableRows(site, unreadable)}
    ${pager(offset === 0 ? undefined : `${site.base}${actPath(id)}`, next === undefined ? undefined : `${site.base}${actPath(id, next)}`, 'Next page')}`,
  );
}
