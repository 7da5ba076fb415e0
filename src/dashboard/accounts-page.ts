import { formatDuration } from '../format.js';
import { estimateEnd } from '../ledger/statistics.js';
import { html, type Html } from './html.js';
import { layout, PULSE_PAGE } from './layout.js';
import { countNeeds } from './overview/needs-section.js';
import type { Overview } from './overview/overview.js';
import type { Pulse } from './pulse/judge-pulse.js';
import { accountPath, type DashboardSite } from './site.js';
import { tableCell } from './table-cell.js';

/** An account in one line. */
export interface AccountAtAGlance {
  readonly platformId: number;
  readonly pulse: Pulse;
  /** Undefined where Redis does not respond. */
  readonly overview: Overview | undefined;
}

/** The overview over all accounts: the ones in trouble first. */
export function accountsPage(site: DashboardSite, accounts: readonly AccountAtAGlance[]): string {
  const rank = { bad: 0, warn: 1, good: 2 };
  const sorted = accounts.toSorted((one, other) => rank[one.pulse.tone] - rank[other.pulse.tone]);
  const title = describeTrouble(accounts) ?? 'All accounts';
  return layout(
    site,
    { title, ...PULSE_PAGE },
    html`<div class="heading"><h1 aria-live="polite">${title}</h1></div>
      <table class="accounts payouts">
        <caption class="unseen">
          Accounts
        </caption>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col">Pulse</th>
            <th scope="col" class="number">Queued</th>
            <th scope="col" class="number">In progress</th>
            <th scope="col" class="number">Need an operator</th>
            <th scope="col" class="number">Sends a minute</th>
          </tr>
        </thead>
        <tbody>
          ${sorted.map((account) => accountRow(site, account))}
        </tbody>
      </table>`,
  );
}

/** What keeps accounts from sending, where it is the same for all of them. */
function describeTrouble(accounts: readonly AccountAtAGlance[]): string | undefined {
  const headlines = accounts.flatMap(({ pulse }) => (pulse.tone === 'bad' ? [pulse.headline] : []));
  if (headlines.length === 0) return undefined;
  const what = new Set(headlines).size === 1 ? headlines[0] : 'Nothing is sent';
  return `${what}: ${headlines.length} of ${accounts.length} accounts`;
}

function accountRow({ root, platformIds }: DashboardSite, { platformId, pulse, overview }: AccountAtAGlance): Html {
  const href = `${root}${accountPath(platformIds, platformId)}/payouts`;
  return html`<tr data-key="${platformId}">
    <th scope="row" class="id"><a href="${href}">Account ${platformId}</a></th>
    ${tableCell('Pulse', 'account-pulse', pulseView(pulse))}
    ${overview === undefined ? html`<td class="quiet" colspan="4">not known</td>` : figures(overview, pulse.tone !== 'bad')}
  </tr>`;
}

function pulseView({ tone, headline, detail }: Pulse): Html {
  return html`<strong class="${tone}"><span class="dot" aria-hidden="true"></span>${headline}</strong>
    ${detail === undefined ? undefined : html`<bdi class="quiet">${detail}</bdi>`}`;
}

function figures(overview: Overview, isMoving: boolean): Html {
  const { stats, statistics, wallNow } = overview;
  const { ratePerMinute, endsAt } = estimateEnd(statistics, stats, wallNow);
  const need = countNeeds(overview);
  const end =
    !isMoving || endsAt === undefined || stats.queued === 0 ? undefined : `${formatDuration(endsAt - wallNow)} left`;
  return html`${tableCell('Queued', 'number', html`<b>${stats.queued}</b> ${end && html`<small>${end}</small>`}`)}
  ${tableCell('In progress', 'number', stats.in_progress)}
  ${tableCell('Need an operator', `number ${need > 0 ? 'trouble' : ''}`, need)}
  ${tableCell('Sends a minute', 'number', ratePerMinute.toFixed(1))}`;
}
