import { formatTable } from './format-table.js';

type Item = Readonly<Record<string, unknown>>;

const CONTROL_CHARACTERS = /\p{Cc}+/gu;

/** The API leaves the structure open (docs/gateway-api-v1.md#open-points). */
export function formatResponse(value: unknown): string {
  if (isListOfItems(value)) return formatItems(value);
  if (!isItem(value)) return `${formatValue(value)}\n`;
  return formatTable(Object.entries(value).map(([name, field]) => [formatValue(name), formatValue(field)]));
}

/** Columns are all fields, in order of first appearance. */
export function formatItems(items: readonly Item[]): string {
  if (items.length === 0) return 'The list is empty.\n';
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))];
  const head = names.map((name) => formatValue(name).toUpperCase());
  const rows = items.map((item) => names.map((name) => formatValue(item[name])));
  return formatTable([head, ...rows], [], [0]);
}

/** One line, without characters that could control the terminal. */
function formatValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replace(CONTROL_CHARACTERS, ' ');
}

function isListOfItems(value: unknown): value is readonly Item[] {
  return Array.isArray(value) && value.length > 0 && value.every(isItem);
}

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
