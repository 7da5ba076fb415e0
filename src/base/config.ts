import { z } from 'zod';
import { findContradictions } from './setting.js';
import { InvalidConfigError, type Problem } from './errors.js';
import { closestName } from './fields.js';
import { readSecretFile } from './trusted-file.js';
import type { Setting, SettingTable, SettingValue } from './setting.js';
import { SETTINGS } from './settings.js';

/**
 * Reads the environment. Each command names the variables that it needs. Every problem is reported at once, and the
 * result is frozen. `settings/` has each variable with its rule and default.
 */

type Row = (typeof SETTINGS)[keyof typeof SETTINGS];

export type VariableName = Row['variable'];

const ROWS: readonly Setting[] = Object.values(SETTINGS);

const ROW_OF = Object.fromEntries(ROWS.map((row) => [row.variable, row])) as Readonly<Record<VariableName, Setting>>;

type Config<Name extends VariableName> = {
  readonly [Key in Name]: SettingValue<Extract<Row, { readonly variable: Key }>>;
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** That of this process. */
export const OWN_ENVIRONMENT: Environment = process.env;

/**
 * Reads the named variables. A secret's value may be in the file that `NAME_FILE` names (one trailing line break is
 * dropped).
 * @throws InvalidConfigError with every problem; secret values are never shown
 */
export function readConfig<Name extends VariableName>(
  names: readonly Name[],
  environment: Environment = process.env,
): Config<Name> {
  const values = readRows(
    names.map((name) => ROW_OF[name]),
    environment,
  );
  return Object.freeze(Object.fromEntries(values)) as Config<Name>;
}

/** By the library's option names. @throws InvalidConfigError see {@link readConfig} */
export function readSettings<Table extends SettingTable>(
  table: Table,
  environment: Environment,
): { readonly [Name in keyof Table]: SettingValue<Table[Name]> } {
  const rows = Object.entries(table);
  const values = readRows(Object.values(table), environment);
  return Object.fromEntries(rows.map(([name, { variable }]) => [name, values.get(variable)])) as never;
}

function readRows(rows: readonly Setting[], environment: Environment): Map<string, unknown> {
  const problems: Problem[] = [];
  const values = new Map<string, unknown>();
  for (const row of rows) {
    const result = readRow(row, environment);
    if ('problem' in result) problems.push(result.problem);
    else if (result.value !== undefined) values.set(row.variable, result.value);
  }
  problems.push(...findContradictions(SETTINGS, (name) => values.get(variableOf(name)), variableOf));
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return values;
}

function variableOf(setting: string): string {
  return (SETTINGS as SettingTable)[setting]?.variable ?? setting;
}

type RowResult = { readonly value: unknown } | { readonly problem: Problem };

function readRow(row: Setting, environment: Environment): RowResult {
  const { variable, rule, secret, hidden = secret } = row;
  const text = readText(row, environment);
  if (typeof text === 'object') return text;
  if (text === undefined) {
    if (!('required' in row)) return { value: 'default' in row ? row.default : undefined };
    const message = secret ? `is required (or ${variable}_FILE, a file that holds it)` : 'is required';
    const misspelt = findMisspelt(environment).find(({ meant }) => meant === variable || meant === `${variable}_FILE`);
    const hint = misspelt === undefined ? '' : `: is ${misspelt.variable} misspelt?`;
    return { problem: { field: variable, message: `${message}${hint}` } };
  }
  const parsed = rule.safeParse(toValue(rule, text));
  if (parsed.success) return { value: parsed.data };
  const broken = parsed.error.issues[0]?.message ?? 'is not valid';
  return { problem: { field: variable, message: hidden ? broken : `${broken} (got "${text}")` } };
}

/** docker-compose turns an unset variable into an empty one. */
function readText(
  { variable, secret }: Setting,
  environment: Environment,
): string | undefined | { readonly problem: Problem } {
  const text = environment[variable] === '' ? undefined : environment[variable];
  const field = `${variable}_FILE`;
  const file = environment[field];
  if (secret !== true || file === undefined || file === '') return text;
  if (text !== undefined) return { problem: { field, message: `is set, but so is ${variable}: use one of them` } };
  try {
    return readSecretFile(file, mayReadOpenSecrets(environment));
  } catch (error) {
    return { problem: { field, message: (error as Error).message } };
  }
}

/** Stricter than for options: systemd's NOTIFY_SOCKET is no NOTIFY_SECRET. */
const LETTERS_PER_TYPO = 4;

const VARIABLES = ROWS.flatMap(({ variable, secret }) => (secret ? [variable, `${variable}_FILE`] : [variable]));

/**
 * Set variables that are probably misspelt, each with the known one. They begin with the same word, so that variables of
 * other programs are left alone.
 */
export function findMisspelt(environment: Environment): { readonly variable: string; readonly meant: string }[] {
  return Object.entries(environment).flatMap(([variable, value]) => {
    if (value === undefined || value === '' || VARIABLES.includes(variable)) return [];
    const family = variable.slice(0, variable.indexOf('_') + 1);
    const rests = VARIABLES.filter((known) => known.startsWith(family)).map((known) => known.slice(family.length));
    const rest = family === '' ? undefined : closestName(variable.slice(family.length), rests, LETTERS_PER_TYPO);
    return rest === undefined ? [] : [{ variable, meant: family + rest }];
  });
}

/** Whether every user of the machine may read a secret's file. Anything but `true` forbids it. */
export function mayReadOpenSecrets(environment: Environment): boolean {
  return environment[SETTINGS.allowReadableSecrets.variable] === 'true';
}

/** Converts the text to a number or flag if needed; then the rule decides. */
function toValue(rule: z.ZodType, text: string): unknown {
  if (rule instanceof z.ZodNumber) return /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (rule instanceof z.ZodBoolean) return text === 'true' || (text === 'false' ? false : text);
  return text;
}
