import { formatTable } from './format-table.js';

type Item = Readonly<Record<string, unknown>>;

const CONTROL_CHARACTERS = /\p{Cc}+/gu;

/**
 * Formats a value whose structure the API leaves open (docs/gateway-api.md#open-points): a list of objects as a table, an
 * object as names and values, anything else as it is.
 */
export function formatResponse(value: unknown): string {
  if (isListOfItems(value)) return formatItems(value);
  if (!isItem(value)) return `${formatValue(value)}\n`;
  return formatTable(Object.entries(value).map(([name, field]) => [formatValue(name), formatValue(field)]));
}

/** Objects as the rows of a table, whose columns are all their fields in order of first appearance. */
export function formatItems(items: readonly Item[]): string {
  if (items.length === 0) return 'The list is empty.\n';
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))];
  const head = names.map((name) => formatValue(name).toUpperCase());
  return formatTable([head, ...items.map((item) => names.map((name) => formatValue(item[name])))]);
}

/** On one line, and without control characters, which could control the terminal. */
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
