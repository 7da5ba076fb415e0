import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { accountSettingFields, DEFAULT_ACCOUNT_SETTINGS } from './account-settings.js';
import { InvalidConfigError, type Problem } from './errors.js';
import { baseUrlField, platformIdField, wholeNumberField } from './fields.js';
import { parseRedisUrl } from './redis.js';

/**
 * The environment, read in one place. Each command asks for the variables that it needs; every problem is reported at
 * once; what comes back is frozen. `docs/configuration.md` explains each variable.
 */

const HIGHEST_PORT = 65_535;

/** A variable is text: the digits become a number, then its rule decides. */
function fromText(field: z.ZodNumber): z.ZodType<number, string> {
  return z
    .string()
    .transform((text) => (/^\d{1,15}$/.test(text) ? Number(text) : NaN))
    .pipe(field);
}

function wholeNumber(lowest: number, highest?: number): z.ZodType<number, string> {
  return fromText(wholeNumberField(lowest, highest));
}

function setting(name: keyof typeof accountSettingFields): z.ZodType<number, string> {
  return fromText(accountSettingFields[name]);
}

const flag = z.enum(['true', 'false'], { error: 'must be true or false' }).transform((value) => value === 'true');

const redisUrl = z.string().superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

const nonEmpty = z.string().min(1, 'must not be empty');

/** Every variable, its rule and its default. A variable without a default is required where it is asked for, unless it is optional. */
const VARIABLES = {
  REDIS_URL: redisUrl.default('redis://127.0.0.1:6379'),
  REDIS_REPLICAS: wholeNumber(0).optional(),
  GATEWAY_PLATFORM_ID: wholeNumber(1).pipe(platformIdField),
  GATEWAY_BASE_URL: baseUrlField,
  GATEWAY_SECRET_KEY: nonEmpty,
  GATEWAY_TIMEOUT_MS: setting('timeoutMs').default(DEFAULT_ACCOUNT_SETTINGS.timeoutMs),
  WITHDRAW_TIMEOUT_MS: setting('withdrawTimeoutMs').default(DEFAULT_ACCOUNT_SETTINGS.withdrawTimeoutMs),
  WITHDRAW_INTERVAL_MS: setting('intervalMs').default(DEFAULT_ACCOUNT_SETTINGS.intervalMs),
  LEASE_MS: setting('leaseMs').default(DEFAULT_ACCOUNT_SETTINGS.leaseMs),
  TAKEOVER_QUARANTINE_MS: setting('quarantineMs').default(DEFAULT_ACCOUNT_SETTINGS.quarantineMs),
  IN_FLIGHT_MAX_MS: setting('inFlightMaxMs').default(DEFAULT_ACCOUNT_SETTINGS.inFlightMaxMs),
  MAX_REJECTIONS_IN_A_ROW: setting('maxRejectionsInARow').default(DEFAULT_ACCOUNT_SETTINGS.maxRejectionsInARow),
  MAX_UNKNOWNS_IN_A_ROW: setting('maxUnknownsInARow').default(DEFAULT_ACCOUNT_SETTINGS.maxUnknownsInARow),
  STATUS_POLL_MIN_MS: setting('pollMinMs').default(DEFAULT_ACCOUNT_SETTINGS.pollMinMs),
  STATUS_POLL_MAX_MS: setting('pollMaxMs').default(DEFAULT_ACCOUNT_SETTINGS.pollMaxMs),
  STATUS_POLL_RATE: setting('pollRate').default(DEFAULT_ACCOUNT_SETTINGS.pollRate),
  STUCK_AFTER_MS: wholeNumber(1_000).default(86_400_000),
  SEND_JOURNAL_DIR: nonEmpty.default('./data/journal'),
  SEND_JOURNAL_DAYS: wholeNumber(1, 36_500).default(30),
  ALLOW_VOLATILE_REDIS: flag.default(false),
  PAYOUT_RETENTION_DAYS: setting('retentionDays').optional(),
  PAYOUT_ACCOUNTS_FILE: nonEmpty.optional(),
  HEALTH_HOST: nonEmpty.default('127.0.0.1'),
  HEALTH_PORT: wholeNumber(0, HIGHEST_PORT).default(9_464),
  DASHBOARD_HOST: nonEmpty.default('127.0.0.1'),
  DASHBOARD_PORT: wholeNumber(0, HIGHEST_PORT).default(3_000),
  DASHBOARD_USER: nonEmpty.optional(),
  DASHBOARD_PASSWORD: nonEmpty.optional(),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
      error: 'must be one of trace, debug, info, warn, error, fatal, silent',
    })
    .default('info'),
};

/** A variable's name as it stands in the environment. */
export type VariableName = keyof typeof VARIABLES;

/** The names of all variables, for help texts and for the check that the docs name every one. */
export const VARIABLE_NAMES = Object.keys(VARIABLES) as VariableName[];

const SECRETS: ReadonlySet<VariableName> = new Set(['GATEWAY_SECRET_KEY', 'DASHBOARD_PASSWORD', 'REDIS_URL']);

/** A value that breaks its rule is shown, unless it may hold a secret: people write passwords into URLs. */
const NEVER_SHOWN: ReadonlySet<VariableName> = new Set<VariableName>([...SECRETS, 'GATEWAY_BASE_URL']);

/** The values of the variables asked for, under the variables' own names. */
export type Config<Name extends VariableName> = { readonly [Key in Name]: z.output<(typeof VARIABLES)[Key]> };

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the named variables. For secrets, `NAME_FILE` may name a file that holds the value (one trailing line break is dropped).
 * @throws InvalidConfigError with every problem; secret values are never shown
 */
export function readConfig<Name extends VariableName>(
  names: readonly Name[],
  environment: Environment = process.env,
): Config<Name> {
  const problems: Problem[] = [];
  const values: Partial<Record<VariableName, unknown>> = {};
  for (const name of names) {
    try {
      const parsed = VARIABLES[name].safeParse(readVariable(name, environment));
      if (parsed.success) values[name] = parsed.data;
      else problems.push({ field: name, message: describe(name, parsed.error, environment) });
    } catch (error) {
      problems.push({ field: `${name}_FILE`, message: (error as Error).message });
    }
  }
  problems.push(...findContradictions(values));
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return Object.freeze(values) as Config<Name>;
}

/** An empty variable is what docker-compose makes of one that is not set. */
function readVariable(name: VariableName, environment: Environment): string | undefined {
  const value = environment[name];
  const file = SECRETS.has(name) ? environment[`${name}_FILE`] : undefined;
  if (file === undefined || file === '') return value === '' ? undefined : value;
  if (value !== undefined && value !== '') throw new Error(`is set, but so is ${name}: use one of them`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new Error(`cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function describe(name: VariableName, error: z.ZodError, environment: Environment): string {
  const value = readVariable(name, environment);
  if (value === undefined)
    return SECRETS.has(name) ? `is required (or ${name}_FILE, a file that holds it)` : 'is required';
  const rule = error.issues[0]?.message ?? 'is not valid';
  return NEVER_SHOWN.has(name) ? rule : `${rule} (got "${value}")`;
}

function findContradictions(values: Partial<Record<VariableName, unknown>>): Problem[] {
  const problems: Problem[] = [];
  const { STATUS_POLL_MIN_MS: min, STATUS_POLL_MAX_MS: max } = values;
  if (typeof min === 'number' && typeof max === 'number' && min > max) {
    problems.push({
      field: 'STATUS_POLL_MIN_MS',
      message: `must not be more than STATUS_POLL_MAX_MS (${min} > ${max})`,
    });
  }
  return problems;
}
