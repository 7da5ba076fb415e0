import { z } from 'zod';
import type { Problem } from './errors.js';
import { toProblem, wholeNumberField } from './fields.js';

/** The type of a row in `settings/`, and the option types that follow from a table of rows. */

export const SETTING_SECTIONS = {
  redis: 'Redis',
  account: 'Account',
  sending: 'Sending',
  polling: 'Following transactions',
  retention: 'Retention',
  serving: 'Health, dashboard and log',
  notifications: 'Notifications',
  control: 'Control of money',
} as const;

/**
 * A row. A setting with a `default`, or `required`, always has a value. Otherwise `absent` says what leaving it out
 * means.
 */
export type Setting = {
  readonly section: keyof typeof SETTING_SECTIONS;
  readonly variable: string;
  /** Checks the value. A variable's text is converted to a number or a boolean before. */
  readonly rule: z.ZodType;
  readonly unit?: 'ms' | 'days' | 'polls per second';
  /** Never shown, and may be given as a file: `<variable>_FILE`. */
  readonly secret?: true;
  /** May be a secret by mistake (a password in a URL), so an invalid value is not shown. */
  readonly hidden?: true;
  /** The value in `.env.example` without a default; for a secret, its file. */
  readonly example?: string;
  /** The setting of the same table that must not be less than this one. */
  readonly atMost?: string;
} & ({ readonly default: string | number | boolean } | { readonly required: true } | { readonly absent: string });

export type SettingTable = Readonly<Record<string, Setting>>;

/** Undefined only without both a default and a value. */
export type SettingValue<Row extends Setting> =
  z.output<Row['rule']> | (Row extends { readonly absent: string } ? undefined : never);

type AlwaysSet<Table extends SettingTable> = {
  [Name in keyof Table]: Table[Name] extends { readonly absent: string } ? never : Name;
}[keyof Table];

type ValuesOf<Table extends SettingTable, Name extends keyof Table> = {
  readonly [Key in Name]: z.output<Table[Key]['rule']>;
};

export type Settings<Table extends SettingTable> = ValuesOf<Table, AlwaysSet<Table>> &
  Partial<ValuesOf<Table, Exclude<keyof Table, AlwaysSet<Table>>>>;

export type PartialSettings<Table extends SettingTable> = {
  readonly [Name in keyof Table]?: z.output<Table[Name]['rule']> | undefined;
};

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

/** Rules that settings of several sections share. */

const HIGHEST_PORT = 65_535;

export const port = wholeNumberField(0, HIGHEST_PORT);

export const text = z.string().min(1, 'must not be empty');

export const flag = z.boolean({ error: 'must be true or false' });
