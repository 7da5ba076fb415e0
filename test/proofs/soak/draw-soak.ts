import type { Mark, SoakResult } from './soak.js';

const [WIDTH, LEFT, RIGHT, TOP, PLOT_HEIGHT, ROW_HEIGHT] = [860, 130, 20, 70, 70, 104];
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const LIMIT_MS = 1_000;
const MINUTE_S = 60;

const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .small { font-size: 11px; fill: #59636e; }
  .axis { stroke: #d1d9e0; }
  .mark { stroke: #d1d9e0; stroke-dasharray: 2 3; }
  .limit { stroke: #cf222e; stroke-dasharray: 3 3; }
  polyline { fill: none; stroke-width: 1.3; }
  .line-0 { stroke: #0969da; } .line-1 { stroke: #1a7f37; } .line-2 { stroke: #9a6700; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .axis, .mark { stroke: #3d444d; }
    .limit { stroke: #ff7b72; }
    .line-0 { stroke: #4493f8; } .line-1 { stroke: #3fb950; } .line-2 { stroke: #d29922; }
  }`;

type Point = readonly [at: number, value: number];

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly lines: readonly (readonly Point[])[];
  /** A line across the row. */
  readonly limit?: number;
}

/** Pace, gaps, memory and file descriptors over the run, one below the other; dashed lines are what went wrong. */
export function drawSoak({ samples, gaps, marks, hours, payouts, smallestGapMs }: SoakResult): string {
  const names = [...new Set(samples.flatMap(({ workers }) => workers.map(({ name }) => name)))].sort();
  const ofWorkers = (field: 'rssMb' | 'fileDescriptors'): Point[][] =>
    names.map((name) =>
      samples.flatMap(({ at, workers }) =>
        workers.filter((each) => each.name === name).map((each) => [at, each[field]]),
      ),
    );
  const rows: Row[] = [
    { name: 'withdrawals', unit: 'a minute', lines: [perMinute(gaps, (all) => all.length)] },
    {
      ...{ name: 'smallest gap', unit: 'ms, by minute', limit: LIMIT_MS },
      lines: [perMinute(gaps, (all) => Math.min(...all.map(({ gapMs }) => gapMs)))],
    },
    { name: 'memory', unit: 'MB, by worker', lines: ofWorkers('rssMb') },
    { name: 'file descriptors', unit: 'by worker', lines: ofWorkers('fileDescriptors') },
    { name: 'Redis', unit: 'MB', lines: [samples.map(({ at, redisMb }) => [at, redisMb])] },
  ];
  const endS = Math.max(1, samples.at(-1)?.at ?? 1);
  const height = TOP + rows.length * ROW_HEIGHT + 10;
  const title = `${payouts} payouts in ${hours} h, ${marks.length} mishaps: smallest gap ${smallestGapMs?.toFixed(1) ?? '-'} ms`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${title}">
<style>${STYLE}
</style>
<text class="title" x="16" y="26">${title}</text>
<text class="small" x="16" y="45">Three workers at the real interval. Dashed: a worker or Redis is killed, stopped or ended.</text>
${rows.map((row, index) => drawRow(row, TOP + index * ROW_HEIGHT, { endS, marks })).join('\n')}
</svg>
`;
}

function perMinute(gaps: SoakResult['gaps'], value: (gaps: SoakResult['gaps']) => number): Point[] {
  const minutes = new Map<number, { at: number; gapMs: number }[]>();
  for (const gap of gaps) {
    const minute = Math.floor(gap.at / MINUTE_S);
    minutes.set(minute, [...(minutes.get(minute) ?? []), gap]);
  }
  return [...minutes].map(([minute, all]) => [(minute + 0.5) * MINUTE_S, value(all)]);
}

function drawRow(
  { name, unit, lines, limit }: Row,
  top: number,
  { endS, marks }: { readonly endS: number; readonly marks: readonly Mark[] },
): string {
  const values = lines.flat().map(([, value]) => value);
  const highest = Math.max(limit ?? 0, ...values) * 1.1 || 1;
  const x = (at: number): string => (LEFT + (at / endS) * PLOT_WIDTH).toFixed(1);
  const y = (value: number): string => (top + PLOT_HEIGHT - (value / highest) * PLOT_HEIGHT).toFixed(1);
  const base = top + PLOT_HEIGHT;
  return [
    `<text x="16" y="${top + 20}">${name}</text><text class="small" x="16" y="${top + 36}">${unit}</text>`,
    `<text class="small" x="${LEFT - 8}" y="${top + 8}" text-anchor="end">${highest.toFixed(0)}</text>`,
    `<text class="small" x="${LEFT - 8}" y="${base}" text-anchor="end">0</text>`,
    ...marks.map(({ at }) => `<line class="mark" x1="${x(at)}" x2="${x(at)}" y1="${top}" y2="${base}"/>`),
    `<line class="axis" x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${base}" y2="${base}"/>`,
    ...(limit === undefined
      ? []
      : [`<line class="limit" x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${y(limit)}" y2="${y(limit)}"/>`]),
    ...lines.map(
      (line, index) =>
        `<polyline class="line-${index}" points="${line.map(([at, value]) => `${x(at)},${y(value)}`).join(' ')}"/>`,
    ),
    `<text class="small" x="${LEFT + PLOT_WIDTH}" y="${base + 16}" text-anchor="end">${(endS / 3_600).toFixed(2)} h</text>`,
  ].join('\n');
}
