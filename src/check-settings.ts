import type { Problem } from './errors.js';
import { toProblem } from './fields.js';
import type { Setting, SettingTable } from './setting.js';

/**
 * The invalid options, by their names in code. Possible secrets are not shown.
 * @param options - unknown options are ignored; undefined counts as absent
 */
export function checkSettings(table: SettingTable, options: object): Problem[] {
  const values: Readonly<Record<string, unknown>> = { ...options };
  const problems = Object.entries(table).flatMap(([name, row]) =>
    values[name] === undefined ? [] : checkSetting(name, row, values[name]),
  );
  return [...problems, ...findContradictions(table, (name) => values[name])];
}

function checkSetting(name: string, { rule, secret, hidden = secret }: Setting, value: unknown): Problem[] {
  const { error } = rule.safeParse(value, { reportInput: hidden !== true });
  return (error?.issues ?? []).map((issue) => ({ ...toProblem(issue), field: name }));
}

/**
 * Settings that contradict each other.
 * @param valueOf - a setting's value, undefined if unknown
 * @param nameOf - what the user calls a setting
 */
export function findContradictions(
  table: SettingTable,
  valueOf: (name: string) => unknown,
  nameOf: (name: string) => string = (name) => name,
): Problem[] {
  return Object.entries(table).flatMap(([name, { atMost }]) => {
    if (atMost === undefined) return [];
    const [value, highest] = [valueOf(name), valueOf(atMost)];
    if (typeof value !== 'number' || typeof highest !== 'number' || value <= highest) return [];
    return [{ field: nameOf(name), message: `must not be more than ${nameOf(atMost)}, ${highest} (got ${value})` }];
  });
}
