import type { CliContext } from '../../context/cli-context.js';
import { formatTable } from '../../output/format-table.js';
import { formatCount } from '../../../format.js';
import type { BookEntry, ForgeSummary } from './forge-summary.js';
import type { ForgeryOutcome } from './forgeries.js';

type Colours = CliContext['colours'];

/** The summary as text: each attack, and what the gateway paid. */
export function formatForge({ ok, problems, attacks, books, durationMs }: ForgeSummary, colours: Colours): string {
  const seconds = Math.round(durationMs / 1_000);
  const verdict = ok
    ? colours.green(`With keys, only what the shop signed was paid, once (${seconds} s).`)
    : colours.red(`Something went wrong (${seconds} s):`);
  const table = formatTable([
    ['', 'attack', 'without keys', 'with keys'].map((title) => colours.dim(title)),
    ...attacks.map(({ attack, withoutKeys, withKeys }) => [
      ...['', attack],
      ...[paint(withoutKeys, colours), paint(withKeys, colours)],
    ]),
  ]);
  return `
${verdict}
${problems.map((problem) => `  ${problem}\n`).join('')}
${table}
${formatBook("The gateway's book, without keys", books.withoutKeys, colours)}
${formatBook("The gateway's book, with keys", books.withKeys, colours)}
Set it up: docs/control.md. All attacks of the test suite: docs/attacks.md.
`;
}

function paint({ succeeded, what }: ForgeryOutcome, colours: Colours): string {
  if (succeeded === undefined) return colours.yellow(what);
  return succeeded ? colours.red(what) : colours.green(what);
}

function formatBook(title: string, book: readonly BookEntry[], colours: Colours): string {
  const rows = book.map(({ amount, addressTo, isAsOrdered, remark }) => [
    ...['', amount, 'to', addressTo],
    isAsOrdered ? remark : colours.red(remark),
  ]);
  const others = book.filter(({ isAsOrdered }) => !isAsOrdered).length;
  const count = `${formatCount(book.length, 'payment')}, ${others === 0 ? 'all as ordered' : `${others} not as ordered`}`;
  return `${title}: ${count}\n${formatTable(rows, [1])}`;
}
