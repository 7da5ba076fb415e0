/** The tables of docs/stored-data.md, from the comments of keys.ts and journal-line.ts and from the invariants. */
import { readFileSync } from 'node:fs';
import { INVARIANTS } from '../src/base/invariants.js';
import { replaceBetween } from './between-marks.js';
import { markdownTable } from './markdown-table.js';

/** The same text with the current tables. @throws Error if a line of the journal has no comment */
export function renderStoredData(text: string): string {
  const parts: Readonly<Record<string, string>> = {
    'redis keys': redisKeys(),
    'journal lines': journalLines(),
    invariants: Object.entries(INVARIANTS)
      .map(([code, rule]) => `- \`${code}\`: ${rule}`)
      .join('\n'),
  };
  return Object.entries(parts).reduce(
    (page, [name, part]) =>
      replaceBetween(page, `<!-- ${name}, by \`npm run docs\` -->\n`, `<!-- end of ${name} -->`, part),
    text,
  );
}

function redisKeys(): string {
  const rows = [...read('src/ledger/keys.ts').matchAll(/^ \* \| (`.*?`) \| (.*?) \| (.*) \|$/gm)];
  return markdownTable(
    ['key', 'type', 'holds'],
    rows.map(([, key = '', type = '', holds = '']) => [key, type, withoutLinks(holds)]),
  );
}

function journalLines(): string {
  const source = read('src/journal/journal-line.ts');
  const kinds =
    /(?:\/\*\*((?:(?!\*\/).)*)\*\/\n)?(?:export )?interface (\w+Line|JournaledLedger)\b[^{]*\{\n(.*?)^\}/gms;
  const rows = [...source.matchAll(kinds)].map(([, comment, name = '', body = '']) => {
    if (comment === undefined) throw new Error(`${name} of journal-line.ts has no comment`);
    const fields = [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, field = '']) => `\`${field}\``);
    return [`\`${name}\``, withoutLinks(comment.replace(/\s*\n? \*\s?/g, ' ').trim()), fields.join(', ')];
  });
  return markdownTable(['line', 'says', 'fields'], rows);
}

function withoutLinks(text: string): string {
  return text.replace(/\{@link (\w+)\}/g, '`$1`');
}

function read(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}
