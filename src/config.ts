import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { InvalidConfigError, type Problem } from './errors.js';
import { baseUrlField, platformIdField } from './fields.js';
import { parseRedisUrl } from './redis.js';

/**
 * The environment, read in one place. Each command asks for the variables that it needs; every problem is reported at
 * once; what comes back is frozen. `docs/configuration.md` explains each variable.
 */

const HIGHEST_PORT = 65_535;

function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): z.ZodType<number, string> {
  const rule =
    max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, `must be ${rule}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be ${rule}`);
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
  GATEWAY_PLATFORM_ID: wholeNumber(1).pipe(platformIdField),
  GATEWAY_BASE_URL: baseUrlField,
  GATEWAY_SECRET_KEY: nonEmpty,
  GATEWAY_TIMEOUT_MS: wholeNumber(100).default(30_000),
  WITHDRAW_TIMEOUT_MS: wholeNumber(100).default(60_000),
  WITHDRAW_INTERVAL_MS: wholeNumber(1_000).default(1_010),
  LEASE_MS: wholeNumber(500).default(10_000),
  TAKEOVER_QUARANTINE_MS: wholeNumber(0).default(10_000),
  IN_FLIGHT_MAX_MS: wholeNumber(0).default(30_000),
  MAX_REJECTIONS_IN_A_ROW: wholeNumber(1).default(5),
  MAX_UNKNOWNS_IN_A_ROW: wholeNumber(1).default(2),
  STATUS_POLL_MIN_MS: wholeNumber(10).default(5_000),
  STATUS_POLL_MAX_MS: wholeNumber(10).default(300_000),
  STATUS_POLL_RATE: wholeNumber(1, 10_000).default(10),
  STUCK_AFTER_MS: wholeNumber(1_000).default(86_400_000),
  SEND_JOURNAL_DIR: nonEmpty.default('./data/journal'),
  ALLOW_VOLATILE_REDIS: flag.default(false),
  PAYOUT_RETENTION_DAYS: wholeNumber(1).optional(),
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
