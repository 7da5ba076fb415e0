import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../base/clock.js';
import { InvalidInputError, type Problem } from '../base/errors.js';
import { amountField, platformIdField, toProblems } from '../base/fields.js';
import { addressToField } from '../gateway/gateway.js';
import type { Logger } from '../base/logger.js';
import { WATCHING_RULES } from '../base/setting.js';
import { delayRangeField, type DelayRange } from './latency.js';
import { faultRuleField, type FaultRule } from './fault-rule.js';
import { type SandboxV2Options, v2Field } from './v2/open-points.js';

/** One merchant account of the sandbox. */
export interface SandboxAccountSettings {
  readonly platformId: number;
  readonly secretKey: string;
  /**
   * What it may pay out, in USD, as a decimal string.
   * @defaultValue `'1000000000000'`, too much to run out by accident
   */
  readonly balance?: string | undefined;
}

/** Options of a sandbox. */
export interface SandboxOptions {
  readonly accounts: readonly SandboxAccountSettings[];
  /** @defaultValue `0`: any free port */
  readonly port?: number | undefined;
  /** @defaultValue `'127.0.0.1'`: any client that reaches the sandbox can also control it */
  readonly host?: string | undefined;
  /** Milliseconds from a withdrawal until `approve` leaves 0. @defaultValue `1000` */
  readonly settleAfterMs?: number | undefined;
  /** Share of payments, 0 to 1, that end with `approve` 2. @defaultValue `0` */
  readonly failShare?: number | undefined;
  /** Recipients whose payments always end with `approve` 2. */
  readonly failAddresses?: readonly string[] | undefined;
  /** Milliseconds until a call arrives; its arrival is recorded after them. @defaultValue `0` */
  readonly latencyBeforeMs?: number | DelayRange | undefined;
  /** Milliseconds that a response takes. @defaultValue `0` */
  readonly latencyAfterMs?: number | DelayRange | undefined;
  readonly faults?: readonly FaultRule[] | undefined;
  /** What the second generation of the API leaves open. Both generations are served, on the same accounts. */
  readonly v2?: SandboxV2Options | undefined;
  /** PEM texts; with them the sandbox serves https. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
  /** Drives latencies and `failShare`; a whole number from 0. @defaultValue a new one each time */
  readonly seed?: number | undefined;
  /** Two withdrawals of an account less than this many milliseconds apart block it. @defaultValue `1000` */
  readonly minGapMs?: number | undefined;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock | undefined;
  /** @defaultValue no logging */
  readonly logger?: Logger | undefined;
}

const PLENTY_OF_USD = '1000000000000';
const HIDDEN_PATHS: readonly PropertyKey[] = ['accounts', 'tls', 'clock', 'logger'];
const milliseconds = z.number({ error: 'must be milliseconds' }).min(0, 'must be 0 or more');
const text = z.string({ error: 'must be a text' }).min(1, 'must not be empty');

const accountField = z.strictObject({
  platformId: platformIdField,
  secretKey: text,
  balance: z
    .union([amountField, z.literal('0')], { error: 'must be a decimal string such as "12.5"' })
    .default(PLENTY_OF_USD),
});

const optionsFields = {
  accounts: z
    .array(accountField, { error: 'must be a list of accounts' })
    .min(1, 'must name at least one account')
    .refine((accounts) => new Set(accounts.map(({ platformId }) => platformId)).size === accounts.length, {
      error: 'must not name a platformId twice',
    }),
  port: z.int({ error: 'must be a whole number' }).min(0).max(65_535, 'must be 0 to 65535').default(0),
  host: text.default('127.0.0.1'),
  settleAfterMs: milliseconds.default(1000),
  failShare: z.number({ error: 'must be a number' }).min(0, 'must be 0 to 1').max(1, 'must be 0 to 1').default(0),
  failAddresses: z.array(addressToField).default([]),
  latencyBeforeMs: delayRangeField.default({ min: 0, max: 0 }),
  latencyAfterMs: delayRangeField.default({ min: 0, max: 0 }),
  faults: z.array(faultRuleField).default([]),
  v2: v2Field.prefault({}),
  tls: z.strictObject({ key: text, cert: text }).optional(),
  seed: z
    .int({ error: 'must be a whole number' })
    .min(0, 'must be 0 or more')
    .default(() => randomInt(2 ** 32)),
  minGapMs: milliseconds.default(1000),
  clock: (WATCHING_RULES.clock.rule as z.ZodType<Clock>).optional(),
  logger: (WATCHING_RULES.logger.rule as z.ZodType<Logger>).optional(),
};

const optionsField = z.strictObject(optionsFields, { error: 'must be an object' });

/** Checked options with their defaults. */
export type SandboxSettings = z.output<typeof optionsField>;

/**
 * Checks the options of a sandbox.
 * @throws InvalidInputError naming every unknown option and broken rule, never with a secret's value
 */
export function parseSandboxOptions(options: SandboxOptions): SandboxSettings {
  const parsed = optionsField.safeParse(options, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(parsed.error.issues.flatMap(toSafeProblems));
}

/** Omits values, because a problem may be near a secret. A list of unknown names contains no values. */
function toSafeProblems(issue: z.core.$ZodIssue): Problem | Problem[] {
  const [option] = issue.path;
  const mayShowSecret = option === undefined || HIDDEN_PATHS.includes(option);
  if (!mayShowSecret || issue.code === 'unrecognized_keys') return toProblems([issue], optionsField);
  return { field: option === undefined ? 'options' : issue.path.join('.'), message: issue.message };
}
