import { availableParallelism, loadavg, totalmem } from 'node:os';
import Table from 'cli-table3';
import type { BenchmarkResult } from './benchmark.js';
import { type Figure, judge } from './figure.js';

/** A number for readers: three significant digits, thousands separated. */
export function round(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** What the figures were measured on. */
export function describeMachine() {
  return {
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: process.platform,
    /** Of the minute before: above the number of cores, others were at work too and the figures are theirs as well. */
    load: readLoad(),
  };
}

export function readLoad(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}

/** The result of a benchmark as text: a table of its rows and the figures with their targets. */
export function formatResult({ rows, figures }: BenchmarkResult, isQuick: boolean): string {
  const [first = {}] = rows;
  const columns = Object.keys(first).filter((column) => !Array.isArray(first[column]));
  const table = new Table({ head: columns.map(toWords), style: { head: [], border: [] } });
  for (const row of rows) table.push(columns.map((column) => formatCell(row[column])));
  const lines = figures.map((each) => `${judge(each, isQuick)}  ${each.name}: ${round(each.value)} (${bound(each)})`);
  return `${table.toString()}\n${lines.join('\n')}\n`;
}

function bound({ atMost, atLeast = NaN }: Figure): string {
  return atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
}

function formatCell(value: unknown) {
  return typeof value === 'number' ? ({ content: round(value), hAlign: 'right' } as const) : String(value);
}

/** `smallestGapMs` → `smallest gap ms` */
function toWords(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
