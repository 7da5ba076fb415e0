import { formatDuration } from '../../format.js';
import { html, type Html } from '../html.js';
import { drawPlot, PLOT_HEIGHT, PLOT_WIDTH, toCoordinate } from './plot.js';
import type { Range, TimeSlot } from './time-slots.js';

const RANGE_NAME: Readonly<Record<Range, string>> = { hour: 'the last hour', day: 'the last 24 hours' };

/** More than one a second never happens. */
const MOST_SENDS = 60;

/** The bars stand apart by this part of their width. */
const BAR_SPACE = 0.18;

/** Sends a minute as bars. */
export function drawSends(slots: readonly TimeSlot[], range: Range): Html {
  const rates = slots.map(({ sent, minutes }) => sent / minutes);
  const width = PLOT_WIDTH / slots.length;
  const total = slots.reduce((sum, { sent }) => sum + sent, 0);
  return drawPlot({
    id: 'sends',
    title: 'Sends a minute',
    current: `${total} sent`,
    description: `${total} sends in ${RANGE_NAME[range]}, ${Math.max(...rates).toFixed(0)} a minute at most.`,
    range,
    scale: ['60', '30', '0'],
    shapes: slots.flatMap((slot, index) => {
      const rate = rates[index] ?? 0;
      if (rate === 0) return [];
      const height = Math.max(2, Math.min(1, rate / MOST_SENDS) * PLOT_HEIGHT);
      const x = toCoordinate((index + BAR_SPACE / 2) * width);
      return [
        html`<rect
          class="bar"
          x="${x}"
          y="${toCoordinate(PLOT_HEIGHT - height)}"
          width="${toCoordinate(width * (1 - BAR_SPACE))}"
          height="${toCoordinate(height)}"
        >
          <title>${formatMinute(slot.at)}: ${slot.sent} sent</title>
        </rect>`,
      ];
    }),
  });
}

/** The scale of gaps: tenfold from line to line, from a tenth of a second. */
const GAP_SCALE = ['17 min', '100 s', '10 s', '1 s', '0.1 s'];
const SMALLEST_GAP_MS = 100;
const GAP_DECADES = GAP_SCALE.length - 1;

/** From the smallest to the largest gap between two sends of each slot. What is below a second must stay empty. */
export function drawGaps(slots: readonly TimeSlot[], range: Range): Html {
  const width = PLOT_WIDTH / slots.length;
  const smallest = slots.flatMap(({ smallestGapMs }) => smallestGapMs ?? []);
  const known = smallest.length > 0;
  const least = known ? `${(Math.min(...smallest) / 1_000).toFixed(3)} s at least` : 'none';
  const forbidden = toGapY(1_000);
  const shapes = slots.flatMap(({ at, smallestGapMs, largestGapMs }, index) => {
    if (smallestGapMs === undefined || largestGapMs === undefined) return [];
    const top = toGapY(largestGapMs);
    return [
      html`<rect
        class="${smallestGapMs < 1_000 ? 'bar too-fast' : 'bar'}"
        x="${toCoordinate((index + BAR_SPACE / 2) * width)}"
        y="${top}"
        width="${toCoordinate(width * (1 - BAR_SPACE))}"
        height="${toCoordinate(Math.max(3, toGapY(smallestGapMs) - top))}"
      >
        <title>${formatMinute(at)}: ${formatGap(smallestGapMs)} to ${formatGap(largestGapMs)}</title>
      </rect>`,
    ];
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
        class="forbidden"
        x="0"
        y="${forbidden}"
        width="${PLOT_WIDTH}"
        height="${toCoordinate(PLOT_HEIGHT - forbidden)}"
      />`,
      ...shapes,
    ],
  });
}

function toGapY(gapMs: number): number {
  const decades = Math.log10(Math.max(SMALLEST_GAP_MS, gapMs) / SMALLEST_GAP_MS);
  return toCoordinate(PLOT_HEIGHT * (1 - Math.min(1, decades / GAP_DECADES)));
}

/** Queued payouts as an area of steps. */
export function drawBacklog(slots: readonly TimeSlot[], range: Range): Html {
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
    current: `${last} queued`,
    description: `Queued payouts over ${RANGE_NAME[range]}: ${highest} at most, ${last} now.`,
    range,
    scale: [String(top), String(top / 2), '0'],
    shapes: first === -1 ? [] : [html`<path class="area" d="${path}" />`],
  });
}

/** The next of 2, 4, 10, 20, 40, 100 …: its half is a whole number. */
function toRoundNumber(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [2, 4, 10].map((factor) => factor * decade).find((rounded) => rounded >= value) ?? 2;
}

/** A gap to the precision that matters where it is short. */
export function formatGap(gapMs: number): string {
  return gapMs < 60_000 ? `${(gapMs / 1_000).toFixed(gapMs < 10_000 ? 3 : 1)} s` : formatDuration(gapMs);
}

function formatMinute(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}
