import { formatCount, formatMoney, formatState } from '../../base/format.js';
import type { BatchMessage, BatchSummary } from '../../ledger/reads/batches.js';
import type { Payout } from '../../ledger/payout.js';
import { PAYOUT_STATES, type PayoutState, SETTLED_STATES, STATE_MEANING, STATE_TONE } from '../../ledger/states.js';
import { batchSteps } from '../../operator/next-steps.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { payoutTable, stateBadge } from '../layout/payout-table.js';
import { heading, nextStepsSection, type Shown, table, tableCell } from '../layout/pieces.js';
import { csvPath, listPath } from './list-query.js';

interface BatchView {
  readonly summary: BatchSummary;
  /** The first payouts that need an operator, or failed. */
  readonly urgent: readonly Payout[];
}

/** The page reads all payouts of its batch: the larger, the more seldom. */
const REFRESH_MS = 5_000;
const REFRESH_MS_PER_PAYOUT = 1;

export function batchPage(site: Site, { summary, urgent }: BatchView, shown: Shown): string {
  const { name: batch, total, messages } = summary;
  const counts = countsOf(summary);
  return layout(
    site,
    { title: `Batch ${batch}`, current: 'list', refreshMs: Math.max(REFRESH_MS, total * REFRESH_MS_PER_PAYOUT) },
    html`${heading(html`Batch <bdi class="mono">${batch}</bdi>`, formatCount(total, 'payout'))}
      ${progressCard(counts, total)} ${sumsTable(site, batch, summary, shown)}
      ${messages.length > 0 && messagesTable(site, batch, messages)}
      ${nextStepsSection(batchSteps(batch, counts, site.platformId, site))}
      ${urgent.length > 0 && urgentSection(site, batch, urgent, shown)}
      <nav class="more" aria-label="Payouts of the batch">
        <a href="${site.base}${csvPath({ batch })}" download>Download all as CSV</a>
        <a href="${site.base}${listPath({ batch })}">All payouts of the batch</a>
      </nav>`,
  );
}

type Counts = Readonly<Record<PayoutState, number>>;

function countsOf({ sums }: BatchSummary): Counts {
  const count = (state: PayoutState): number => sums[state].reduce((sum, each) => sum + each.count, 0);
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, count(state)])) as Counts;
}

const BAR_WIDTH = 1_000;

/** Finished payouts as a bar in the states' colours. The table below is its legend. */
function progressCard(counts: Counts, total: number): Html {
  const ended = SETTLED_STATES.reduce((sum, state) => sum + counts[state], 0);
  const percent = Math.floor((ended / total) * 100);
  let x = 0;
  const parts = BAR_ORDER.map((state) => {
    const width = (counts[state] / total) * BAR_WIDTH;
    const part = html`<rect
      class="tone-${STATE_TONE[state]}"
      opacity="${state === 'queued' ? 0.2 : 1}"
      x="${x.toFixed(2)}"
      y="0"
      width="${width.toFixed(2)}"
      height="12"
    />`;
    x += width;
    return part;
  });
  return html`<section class="card progress">
    <h2>${percent} % done</h2>
    <p class="quiet">${ended} of ${total} have ended or wait for an operator; ${counts.completed} are completed.</p>
    <svg
      viewBox="0 0 ${BAR_WIDTH} 12"
      width="100%"
      height="12"
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      ${parts}
    </svg>
  </section>`;
}

const BAR_ORDER: readonly PayoutState[] = [
  'completed',
  ...SETTLED_STATES.filter((state) => state !== 'completed'),
  ...PAYOUT_STATES.filter((state) => !SETTLED_STATES.includes(state)).toReversed(),
];

function sumsTable({ base }: Site, batch: string, summary: BatchSummary, { currencies }: Shown): Html {
  const { sums } = summary;
  const isOfSeveral = hasSymbols(summary);
  const rows = PAYOUT_STATES.filter((state) => sums[state].length > 0).map(
    (state) =>
      html`<tr>
        <th scope="row" class="id">
          <a href="${base}${listPath({ state, batch })}">${stateBadge(state)}</a>
          <span class="quiet line">${STATE_MEANING[state]}</span>
        </th>
        ${tableCell(
          'Payouts',
          'number',
          sums[state].reduce((sum, { count }) => sum + count, 0),
        )}
        ${tableCell(
          'Sum',
          'number',
          html`${sums[state].map(
            ({ amount, paymentId, symbol = '' }) =>
              html`<span class="line">
                ${formatMoney(amount, paymentId, currencies)}
                ${isOfSeveral ? html`<span class="quiet">account ${symbol}</span>` : undefined}
              </span>`,
          )}`,
        )}
      </tr>`,
  );
  return html`<section class="list">
    <h2>Sums</h2>
    ${table(`Payouts and sums of batch ${batch} by state`, ['State', '#Payouts', '#Sum'], rows)}
  </section>`;
}

/** Whether the accounts have several currencies, so that each sum must name its own. */
function hasSymbols({ sums }: BatchSummary): boolean {
  return new Set(Object.values(sums).flatMap((each) => each.map(({ symbol }) => symbol))).size > 1;
}

function messagesTable({ base }: Site, batch: string, messages: readonly BatchMessage[]): Html {
  return html`<section class="list">
    <h2>What went wrong</h2>
    ${table(
      `Messages of batch ${batch}, the most frequent first`,
      ['Message', 'State', '#Payouts'],
      messages.map(
        ({ state, message, count }) =>
          html`<tr>
            <th scope="row" class="message"><bdi>${message}</bdi></th>
            <td>
              <a href="${base}${listPath({ state, batch })}" aria-label="Payouts ${formatState(state)} of the batch"
                >${stateBadge(state)}</a
              >
            </td>
            ${tableCell('Payouts', 'number', count)}
          </tr>`,
      ),
    )}
  </section>`;
}

function urgentSection(site: Site, batch: string, urgent: readonly Payout[], shown: Shown): Html {
  return html`<section class="list">
    <h2>These need an operator</h2>
    ${payoutTable(site, urgent, shown, `Payouts of batch ${batch} that need an operator`)}
  </section>`;
}
