import { availableParallelism, loadavg, totalmem } from 'node:os';
import Table from 'cli-table3';

/** A number for readers: three significant digits, thousands separated. */
export function round(value) {
  if (!Number.isFinite(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** A figure with its target, an upper or a lower bound. */
export function figure(name, value, { atMost, atLeast }) {
  const reached = atMost === undefined ? value >= atLeast : value <= atMost;
  return { name, value, ...(atMost === undefined ? { atLeast } : { atMost }), reached };
}

/** What the figures were measured on. */
export function describeMachine() {
  return {
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: process.platform,
    /** Of the minute before: above the number of cores, others were at work too and the figures are theirs as well. */
    load: Math.round(loadavg()[0] * 10) / 10,
  };
}

/**
 * The result of a benchmark as text: a table of its rows and the figures with their targets.
 * @param result - `{ rows, figures }`; every row has the same properties
 */
export function formatResult({ rows, figures }) {
  const columns = Object.keys(rows[0]).filter((column) => !Array.isArray(rows[0][column]));
  const table = new Table({ head: columns.map(toWords), style: { head: [], border: [] } });
  for (const row of rows) table.push(columns.map((column) => formatCell(row[column])));
  const lines = figures.map(({ name, value, atMost, atLeast, reached }) => {
    const wanted = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
    return `${reached ? 'reached' : 'MISSED '}  ${name}: ${round(value)} (${wanted})`;
  });
  return `${table.toString()}\n${lines.join('\n')}\n`;
}

function formatCell(value) {
  return typeof value === 'number' ? { content: round(value), hAlign: 'right' } : value;
}

/** `smallestGapMs` → `smallest gap ms` */
function toWords(name) {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
