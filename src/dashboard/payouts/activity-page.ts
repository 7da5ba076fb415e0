import { formatCount } from '../../base/format.js';
import { ACTIVITIES, type Activity } from '../../ledger/reads/activity.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { payoutPath } from '../layout/payout-table.js';
import { heading, pager, table, tableCell, textCell, utcTime } from '../layout/pieces.js';

interface ActivityList {
  readonly activities: readonly Activity[];
  readonly next: string | undefined;
  readonly isFirst: boolean;
}

export function activityPage(site: Site, { activities, next, isFirst }: ActivityList): string {
  const path = `${site.base}/activity`;
  return layout(
    site,
    { title: 'Activity', current: 'activity' },
    html`${heading('Activity', 'who did what, and why · newest first')}
    ${
      activities.length > 0
        ? activityTable(site, activities)
        : html`<p class="card quiet">
            ${next === undefined ? `Nothing ${isFirst ? 'was done by an operator so far' : 'more'}.` : 'Nothing among the events searched so far.'}
          </p>`
    }
    ${pager(isFirst ? undefined : path, next && `${path}?before=${encodeURIComponent(next)}`, 'Older')}`,
  );
}

function activityTable({ base }: Site, activities: readonly Activity[]): Html {
  return table(
    'What was done, newest first',
    ['Time', 'Who', 'What', 'Payout', 'Why'],
    activities.map(
      ({ at, by, what, payoutId, count, reason }) =>
        html`<tr>
          ${tableCell('', utcTime(at))} ${textCell(by)} ${textCell(ACTIVITIES[what])}
          ${tableCell('', aboutWhat(base, payoutId, count))} ${textCell(reason)}
        </tr>`,
    ),
  );
}

function aboutWhat(base: string, payoutId: string | undefined, count: number): Html {
  if (payoutId !== undefined) return html`<a href="${base}${payoutPath(payoutId)}">${payoutId}</a>`;
  return html`${count > 0 ? formatCount(count, 'payout') : 'the account'}`;
}
