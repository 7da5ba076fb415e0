import { round } from '../report.js';

const LEFT = 196;
const PLOT_WIDTH = 520;
const ROW_HEIGHT = 62;
const BAR_ROOM = 40;
const TOP = 74;
const WIDTH = LEFT + PLOT_WIDTH + 24;
const FROM_MS = 600;
const TO_MS = 1_500;
const BIN_MS = 25;
const LIMIT_MS = 1_000;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .small { font-size: 11px; fill: #59636e; }
  .name { font-weight: 600; }
  .bad { fill: #cf222e; }
  .good { fill: #1a7f37; }
  .axis { stroke: #d1d9e0; }
  .limit { stroke: #1f2328; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .bad { fill: #ff7b72; }
    .good { fill: #3fb950; }
    .axis { stroke: #3d444d; }
    .limit { stroke: #f0f6fc; }
  }`;

export interface PacingRow {
  readonly name: string;
  readonly gaps: number;
  readonly gapsMs: readonly number[];
  readonly tooClose: number;
  readonly smallestGapMs: number;
  readonly payoutsPerSecond: number;
}

/** Histograms of the gaps, one below the other, with the gateway's limit across all of them. */
export function drawPacing(rows: readonly PacingRow[], count: number): string {
  const bottom = TOP + rows.length * ROW_HEIGHT;
  const height = bottom + 46;
  const ticks = [600, 800, 1_000, 1_200, 1_400].map(
    (ms) => `<text class="small" x="${xOf(ms)}" y="${bottom + 16}" text-anchor="middle">${ms}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${describe(rows)}">
<style>${STYLE}
</style>
<text class="title" x="16" y="26">How far apart ${count} withdrawals reach the gateway</text>
<text class="small" x="16" y="45">ms between arrivals, with 0 to 300 ms of network jitter. Left of the line the gateway blocks the account.</text>
${rows.map((row, index) => drawRow(row, TOP + index * ROW_HEIGHT)).join('\n')}
<line class="limit" x1="${xOf(LIMIT_MS)}" x2="${xOf(LIMIT_MS)}" y1="${TOP - 14}" y2="${bottom}"/>
${ticks.join('\n')}
<text class="small" x="${LEFT + PLOT_WIDTH / 2}" y="${bottom + 34}" text-anchor="middle">gap, ms (bars of ${BIN_MS} ms; what lies beyond the ends is in the end bars)</text>
</svg>
`;
}

function drawRow({ name, gapsMs, tooClose, smallestGapMs, payoutsPerSecond }: PacingRow, top: number): string {
  const base = top + BAR_ROOM;
  const bins = countBins(gapsMs);
  const highest = Math.max(...bins.values());
  const bars = [...bins].map(([fromMs, count]) => {
    const barHeight = Math.max(2, (count / highest) * BAR_ROOM);
    const side = fromMs < LIMIT_MS ? 'bad' : 'good';
    const width = (xOf(fromMs + BIN_MS) - xOf(fromMs) - 1).toFixed(1);
    return `<rect class="${side}" x="${xOf(fromMs)}" y="${(base - barHeight).toFixed(1)}" width="${width}" height="${barHeight.toFixed(1)}"/>`;
  });
  return `<text class="name" x="16" y="${top + 12}">${name}</text>
<text class="${tooClose === 0 ? 'good' : 'bad'}" x="16" y="${top + 28}">${tooClose} of ${gapsMs.length} too close</text>
<text class="small" x="16" y="${top + 43}">smallest ${round(smallestGapMs)} · ${round(payoutsPerSecond)} a second</text>
<line class="axis" x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${base}" y2="${base}"/>
${bars.join('')}`;
}

function countBins(gapsMs: readonly number[]): Map<number, number> {
  const bins = new Map<number, number>();
  for (const gapMs of gapsMs) {
    const within = Math.min(Math.max(gapMs, FROM_MS), TO_MS - BIN_MS);
    const fromMs = Math.floor(within / BIN_MS) * BIN_MS;
    bins.set(fromMs, (bins.get(fromMs) ?? 0) + 1);
  }
  return bins;
}

function xOf(ms: number): number {
  return Math.round((LEFT + ((ms - FROM_MS) / (TO_MS - FROM_MS)) * PLOT_WIDTH) * 10) / 10;
}

function describe(rows: readonly PacingRow[]): string {
  return rows.map(({ name, gaps, tooClose }) => `${name}: ${tooClose} of ${gaps} gaps under 1000 ms`).join('; ');
}
