import type { z } from 'zod';

/** What a row in `settings/` says, and the option types that follow from a table of rows. */

/** The headings under which settings are documented, in this order. */
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
 * What a row says. With a `default`, or `required`, the setting always has a value; else `absent` says what leaving it
 * out means.
 */
export type Setting = {
  readonly section: keyof typeof SETTING_SECTIONS;
  /** The name in the environment. */
  readonly variable: string;
  /** Checks the value: a variable's text has become a number or a boolean before. */
  readonly rule: z.ZodType;
  readonly unit?: 'ms' | 'days' | 'polls per second';
  /** Never shown, and may be given as a file: `<variable>_FILE`. */
  readonly secret?: true;
  /** May be a secret by mistake (a password in a URL), so an invalid value is not shown. */
  readonly hidden?: true;
  /** What `.env.example` says where there is no default; of a secret, its file. */
  readonly example?: string;
  /** The setting of the same table that must not be less than this one. */
  readonly atMost?: string;
} & ({ readonly default: string | number | boolean } | { readonly required: true } | { readonly absent: string });

/** Rows by the name of the option. */
export type SettingTable = Readonly<Record<string, Setting>>;

/** What a setting's value is: undefined only where there is neither a default nor a value. */
export type SettingValue<Row extends Setting> =
  z.output<Row['rule']> | (Row extends { readonly absent: string } ? undefined : never);

/** The settings of a table that always have a value. */
type AlwaysSet<Table extends SettingTable> = {
  [Name in keyof Table]: Table[Name] extends { readonly absent: string } ? never : Name;
}[keyof Table];

type ValuesOf<Table extends SettingTable, Name extends keyof Table> = {
  readonly [Key in Name]: z.output<Table[Key]['rule']>;
};

/** The settings of a table as options, after the defaults were filled in. */
export type Settings<Table extends SettingTable> = ValuesOf<Table, AlwaysSet<Table>> &
  Partial<ValuesOf<Table, Exclude<keyof Table, AlwaysSet<Table>>>>;

/** The settings of a table as options of which each may be left out, also by saying `undefined`. */
export type PartialSettings<Table extends SettingTable> = {
  readonly [Name in keyof Table]?: z.output<Table[Name]['rule']> | undefined;
};
