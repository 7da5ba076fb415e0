import { formatAmount, formatDuration } from '../../base/format.js';
import type { AccountStatistics } from '../../ledger/reads/statistics.js';
import { html, type Html } from '../layout/html.js';
import { tableCell, table } from '../layout/pieces.js';

/**
 * @param queued - now: the statistics follow the ledger by some seconds, and the picture must end at the count that the
 * page shows elsewhere
 * @param wallNow - wall clock, ms
 */
export function picturesSection(
  { minutes }: Pick<AccountStatistics, 'minutes'>,
  queued: number,
  range: Range,
  path: string,
  wallNow: number,
): Html {
  const slots = endingAt(queued, toTimeSlots(minutes, PICTURE_SLOTS[range], wallNow));
  const rows = endingAt(queued, toTimeSlots(minutes, TABLE_SLOTS[range], wallNow));
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

function endingAt(queued: number, slots: readonly TimeSlot[]): readonly TimeSlot[] {
  return slots.map((slot, index) => (index === slots.length - 1 ? { ...slot, backlog: queued } : slot));
}

function figuresTable(rows: readonly TimeSlot[]): Html {
  return table(
    'Sends, gaps and backlog',
    ['From (UTC)', '#Sent', '#Smallest gap', '#Largest gap', '#Backlog'],
    rows.toReversed().map(
      ({ at, sent, smallestGapMs, largestGapMs, backlog }) =>
        html`<tr>
          <th scope="row">${new Date(at).toISOString().slice(11, 16)}</th>
          ${tableCell('number', sent)} ${tableCell('number', smallestGapMs && formatGap(smallestGapMs))}
          ${tableCell('number', largestGapMs && formatGap(largestGapMs))} ${tableCell('number', backlog)}
        </tr>`,
    ),
  );
}

const RANGE_NAME: Readonly<Record<Range, string>> = { hour: 'the last hour', day: 'the last 24 hours' };

/** At most one a second. */
const MOST_SENDS = 60;

/** The share of its width that separates a bar from the next. */
const BAR_SPACE = 0.18;

function drawSends(slots: readonly TimeSlot[], range: Range): Html {
  const rates = slots.map(({ sent, minutes }) => sent / minutes);
  const width = PLOT_WIDTH / slots.length;
  const total = slots.reduce((sum, { sent }) => sum + sent, 0);
  return drawPlot({
    id: 'sends',
    title: 'Sends a minute',
    current: `${formatAmount(total)} sent`,
    description: `${total} sends in ${RANGE_NAME[range]}, ${Math.max(...rates).toFixed(0)} a minute at most.`,
    range,
    scale: ['60', '30', '0'],
    shapes: slots.flatMap((slot, index) => {
      const rate = rates[index] ?? 0;
      if (rate === 0) return [];
      const height = Math.max(2, Math.min(1, rate / MOST_SENDS) * PLOT_HEIGHT);
      return [drawBar(index, width, PLOT_HEIGHT - height, height, `${formatMinute(slot.at)}: ${slot.sent} sent`)];
    }),
  });
}

/** The scale of gaps: a factor of ten a line, from a tenth of a second. */
const GAP_SCALE = ['17 min', '100 s', '10 s', '1 s', '0.1 s'];
const SMALLEST_GAP_MS = 100;
const GAP_DECADES = GAP_SCALE.length - 1;

/** The smallest to the largest gap between sends in each slot. The range below a second must stay empty. */
function drawGaps(slots: readonly TimeSlot[], range: Range): Html {
  const width = PLOT_WIDTH / slots.length;
  const smallest = slots.flatMap(({ smallestGapMs }) => smallestGapMs ?? []);
  const known = smallest.length > 0;
  const least = known ? `${(Math.min(...smallest) / 1_000).toFixed(3)} s at least` : 'none';
  const forbidden = toGapY(1_000);
  const shapes = slots.flatMap(({ at, smallestGapMs, largestGapMs }, index) => {
    if (smallestGapMs === undefined || largestGapMs === undefined) return [];
    const top = toGapY(largestGapMs);
    const height = Math.max(3, toGapY(smallestGapMs) - top);
    const title = `${formatMinute(at)}: ${formatGap(smallestGapMs)} to ${formatGap(largestGapMs)}`;
    return [drawBar(index, width, top, height, title, smallestGapMs < 1_000 ? 'bar tone-bad' : 'bar')];
  });
  return drawPlot({
    id: 'gaps',
    title: 'Gaps between sends',
    current: least,
    description: `From the smallest to the largest gap of each part of ${RANGE_NAME[range]}: ${least}. A gap below 1 s would be too fast.`,
    range,
    scale: GAP_SCALE,
    shapes: [
      html`<rect
        class="tone-bad"
        opacity="0.09"
        x="0"
        y="${forbidden}"
        width="${PLOT_WIDTH}"
        height="${toCoordinate(PLOT_HEIGHT - forbidden)}"
      />`,
      ...shapes,
    ],
  });
}

function drawBar(index: number, width: number, y: number, height: number, title: string, className = 'bar'): Html {
  return html`<rect
    class="${className}"
    x="${toCoordinate((index + BAR_SPACE / 2) * width)}"
    y="${toCoordinate(y)}"
    width="${toCoordinate(width * (1 - BAR_SPACE))}"
    height="${toCoordinate(height)}"
  >
    <title>${title}</title>
  </rect>`;
}

function toGapY(gapMs: number): number {
  const decades = Math.log10(Math.max(SMALLEST_GAP_MS, gapMs) / SMALLEST_GAP_MS);
  return toCoordinate(PLOT_HEIGHT * (1 - Math.min(1, decades / GAP_DECADES)));
}

function drawBacklog(slots: readonly TimeSlot[], range: Range): Html {
  const known = slots.flatMap(({ backlog }) => backlog ?? []);
  const highest = Math.max(0, ...known);
  const top = toRoundNumber(highest);
  const width = PLOT_WIDTH / slots.length;
  const toY = (backlog: number): number => toCoordinate(PLOT_HEIGHT * (1 - backlog / top));
  const first = slots.findIndex(({ backlog }) => backlog !== undefined);
  const steps = slots
    .map(({ backlog = 0 }, index) => `V${toY(backlog)}H${toCoordinate((index + 1) * width)}`)
    .slice(Math.max(0, first))
    .join('');
  const path = `M${toCoordinate(Math.max(0, first) * width)} ${PLOT_HEIGHT}${steps}V${PLOT_HEIGHT}Z`;
  const last = known.at(-1) ?? 0;
  return drawPlot({
    id: 'backlog',
    title: 'Backlog',
    current: `${formatAmount(last)} queued`,
    description: `Queued payouts over ${RANGE_NAME[range]}: ${highest} at most, ${last} now.`,
    range,
    scale: [formatAmount(top), formatAmount(top / 2), '0'],
    shapes: first === -1 ? [] : [html`<path class="area" d="${path}" opacity="0.4" />`],
  });
}

/** The next of 2, 4, 10, 20, 40, 100 …, whose half is whole. */
function toRoundNumber(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [2, 4, 10].map((factor) => factor * decade).find((rounded) => rounded >= value) ?? 2;
}

/** Short gaps need more digits. */
function formatGap(gapMs: number): string {
  return gapMs < 60_000 ? `${(gapMs / 1_000).toFixed(gapMs < 10_000 ? 3 : 1)} s` : formatDuration(gapMs);
}

function formatMinute(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}

interface Plot {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly current: string;
  readonly range: Range;
  /** Labels of the vertical axis at equal distances, from the top. */
  readonly scale: readonly string[];
  /** SVG in the coordinates of {@link PLOT_WIDTH} and {@link PLOT_HEIGHT}. */
  readonly shapes: readonly Html[];
}

/** The picture is stretched to the available width; lines keep their thickness. */
const PLOT_WIDTH = 960;
const PLOT_HEIGHT = 160;

const TIMES: Readonly<Record<Range, readonly string[]>> = {
  hour: ['60 min ago', '45', '30', '15', 'now'],
  day: ['24 h ago', '18', '12', '6', 'now'],
};

/** The text is HTML around the picture, because stretched text is unreadable. */
function drawPlot({ id, title, description, current, range, scale, shapes }: Plot): Html {
  return html`<figure class="plot">
    <figcaption>
      <h3>${title}</h3>
      <b>${current}</b>
    </figcaption>
    <div class="plot-area">
      <div class="plot-scale" aria-hidden="true">${scale.map((label) => html`<span>${label}</span>`)}</div>
      <svg
        role="img"
        aria-labelledby="${id}-title ${id}-desc"
        viewBox="0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}"
        preserveAspectRatio="none"
        width="100%"
        height="130"
      >
        <title id="${id}-title">${title}</title>
        <desc id="${id}-desc">${description}</desc>
        ${drawGrid(scale.length - 1)} ${shapes}
      </svg>
      <span></span>
      <div class="plot-times" aria-hidden="true">${TIMES[range].map((label) => html`<span>${label}</span>`)}</div>
    </div>
  </figure>`;
}

function drawGrid(parts: number): Html[] {
  return Array.from({ length: parts + 1 }, (_, index) => {
    const y = (index * PLOT_HEIGHT) / parts;
    return html`<line
      stroke="currentColor"
      opacity="0.2"
      vector-effect="non-scaling-stroke"
      x1="0"
      x2="${PLOT_WIDTH}"
      y1="${y}"
      y2="${y}"
    />`;
  });
}

/** To a tenth: more digits only lengthen the page. */
function toCoordinate(value: number): number {
  return Math.round(value * 10) / 10;
}

export type Range = 'hour' | 'day';

interface TimeSlot {
  /** Its beginning, wall clock, ms. */
  readonly at: number;
  readonly minutes: number;
  readonly sent: number;
  readonly smallestGapMs: number | undefined;
  readonly largestGapMs: number | undefined;
  /** Queued payouts at its end; undefined before the first known event. */
  readonly backlog: number | undefined;
}

const MINUTE_MS = 60_000;

/** One slot a minute, or one a quarter of an hour. */
const PICTURE_SLOTS = { hour: { count: 60, minutes: 1 }, day: { count: 96, minutes: 15 } } as const;

const TABLE_SLOTS = { hour: { count: 12, minutes: 5 }, day: { count: 24, minutes: 60 } } as const;

interface Slots {
  readonly count: number;
  readonly minutes: number;
}

/** Divides the time before `wallNow` into equal slots, oldest first; the last is not over. */
function toTimeSlots(
  minutes: AccountStatistics['minutes'],
  { count, minutes: length }: Slots,
  wallNow: number,
): TimeSlot[] {
  const lengthMs = length * MINUTE_MS;
  const end = (Math.floor(wallNow / lengthMs) + 1) * lengthMs;
  const start = end - count * lengthMs;
  let backlog = minutes.findLast(({ at }) => at < start)?.backlog;
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * lengthMs;
    const inside = minutes.filter((minute) => minute.at >= at && minute.at < at + lengthMs);
    backlog = inside.at(-1)?.backlog ?? backlog;
    const smallest = inside.flatMap(({ smallestGapMs }) => smallestGapMs ?? []);
    const largest = inside.flatMap(({ largestGapMs }) => largestGapMs ?? []);
    return {
      at,
      minutes: length,
      sent: inside.reduce((sum, { sent }) => sum + sent, 0),
      smallestGapMs: smallest.length === 0 ? undefined : Math.min(...smallest),
      largestGapMs: largest.length === 0 ? undefined : Math.max(...largest),
      backlog,
    };
  });
}
