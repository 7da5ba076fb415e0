import { z } from 'zod';
import { InvalidConfigError, type Problem } from './errors.js';
import { toProblem, unknownName, wholeNumberField } from './fields.js';

/** The type of a row in `settings/`, and the option types that follow from a table of rows. */

export const SETTING_SECTIONS = {
  redis: 'Redis',
  account: 'Account',
  sending: 'Sending',
  polling: 'Following transactions',
  retention: 'Retention',
  serving: 'Health, dashboard and log',
  notifications: 'Notifications',
  http: 'HTTP door',
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

/** What an option of a public class or function must be. Rows of a {@link SettingTable} are such rules. */
export type OptionRule = Pick<Setting, 'rule' | 'secret' | 'hidden' | 'atMost'> & { readonly required?: true };

/** A rule for each option of a type. */
export type OptionRules<Options> = { readonly [Name in keyof Required<Options>]: OptionRule };

/**
 * The problems of options, by their names in code. Possible secrets are not shown.
 * @param options - undefined values count as absent
 * @param field - names the options themselves
 */
export function checkOptions(
  rules: Readonly<Record<string, OptionRule>>,
  options: unknown,
  field = 'options',
): Problem[] {
  if (typeof options !== 'object' || options === null) {
    const type = options === undefined || options === null ? String(options) : `a ${typeof options}`;
    return [{ field, message: `must be an object (got ${type})` }];
  }
  const values = options as Readonly<Record<string, unknown>>;
  const names = Object.keys(rules);
  return [
    ...Object.keys(values)
      .filter((name) => values[name] !== undefined && !names.includes(name))
      .map((name) => unknownName(name, names)),
    ...Object.entries(rules).flatMap(([name, rule]) => checkOption(name, rule, values[name])),
    ...findContradictions(rules, (name) => values[name]),
  ];
}

function checkOption(name: string, { rule, secret, hidden = secret, required }: OptionRule, value: unknown): Problem[] {
  if (value === undefined) return required === true ? [{ field: name, message: 'is missing' }] : [];
  const { error } = rule.safeParse(value, { reportInput: hidden !== true });
  return (error?.issues ?? []).map((issue) => ({ ...toProblem(issue), field: name }));
}

/** @throws InvalidConfigError with all problems, if there are any */
export function requireNone(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidConfigError(problems);
}

/**
 * Settings that contradict each other.
 * @param valueOf - a setting's value, undefined if unknown
 * @param nameOf - what the user calls a setting
 */
export function findContradictions(
  table: Readonly<Record<string, Pick<Setting, 'rule' | 'atMost'>>>,
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

export const text = z.string('must be a string').min(1, 'must not be empty');

export const flag = z.boolean({ error: 'must be true or false' });

/** An object of the application. It may hold a secret, so it is not shown. */
export function objectWith(...methods: readonly string[]): OptionRule {
  const isUsable = (value: unknown): boolean =>
    Object(value) === value &&
    methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function');
  return { rule: z.custom(isUsable, `must be an object with ${methods.join(', ')}`), hidden: true };
}

export const functionRule: OptionRule = {
  rule: z.custom((value) => typeof value === 'function', 'must be a function'),
  hidden: true,
};

/** Options that nearly every public class takes. */
export const WATCHING_RULES = {
  logger: objectWith('debug', 'info', 'warn', 'error', 'child'),
  clock: objectWith('now', 'wallNow', 'sleep'),
} as const;
