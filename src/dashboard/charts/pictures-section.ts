import type { AccountStatistics } from '../../ledger/statistics.js';
import { html, type Html } from '../html.js';
import { drawBacklog, drawGaps, drawSends, formatGap } from './pictures.js';
import { PICTURE_SLOTS, TABLE_SLOTS, toTimeSlots, type Range, type TimeSlot } from './time-slots.js';

interface PicturesOptions {
  readonly range: Range;
  /** Of the page, for the links between the ranges. */
  readonly path: string;
  /** Wall clock, ms. */
  readonly wallNow: number;
}

/** Sends, gaps and backlog over the last hour or day, as pictures and in figures. */
export function picturesSection(
  { minutes }: Pick<AccountStatistics, 'minutes'>,
  { range, path, wallNow }: PicturesOptions,
): Html {
  const slots = toTimeSlots(minutes, PICTURE_SLOTS[range], wallNow);
  const rows = toTimeSlots(minutes, TABLE_SLOTS[range], wallNow);
  const rangeLink = (each: Range, text: string): Html =>
    html`<a href="${path}?range=${each}" ${each === range ? html`aria-current="true"` : undefined}>${text}</a>`;
  return html`<section class="pictures" aria-labelledby="pictures-title">
    <div class="section-title">
      <h2 id="pictures-title">${range === 'hour' ? 'The last hour' : 'The last 24 hours'}</h2>
      <nav class="range" aria-label="Range of the pictures">
        ${rangeLink('hour', '1 hour')} ${rangeLink('day', '24 hours')}
      </nav>
    </div>
    <div class="plots">${drawSends(slots, range)} ${drawGaps(slots, range)} ${drawBacklog(slots, range)}</div>
    <details class="in-figures">
      <summary>The same in figures</summary>
      ${figuresTable(rows)}
    </details>
  </section>`;
}

function figuresTable(rows: readonly TimeSlot[]): Html {
  return html`<table class="plain">
    <caption class="unseen">
      Sends, gaps and backlog
    </caption>
    <thead>
      <tr>
        <th scope="col">From (UTC)</th>
        <th scope="col" class="number">Sent</th>
        <th scope="col" class="number">Smallest gap</th>
        <th scope="col" class="number">Largest gap</th>
        <th scope="col" class="number">Backlog</th>
      </tr>
    </thead>
    <tbody>
      ${rows.toReversed().map(
        ({ at, sent, smallestGapMs, largestGapMs, backlog }) =>
          html`<tr>
            <th scope="row">${new Date(at).toISOString().slice(11, 16)}</th>
            <td class="number">${sent}</td>
            <td class="number">${smallestGapMs === undefined ? '–' : formatGap(smallestGapMs)}</td>
            <td class="number">${largestGapMs === undefined ? '–' : formatGap(largestGapMs)}</td>
            <td class="number">${backlog ?? '–'}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
