import { type Clock, systemClock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import { baseUrlField, millisecondsField } from '../../base/fields.js';
import { failsafeLogger, type Logger, silentLogger } from '../../base/logger.js';
import { checkOptions, type OptionRules, text, WATCHING_RULES } from '../../base/setting.js';
import { ACCOUNT_IDENTITY, CONNECT_WITHIN_MS } from '../../base/settings.js';
import type { GatewayAccess } from './exchange-once.js';

/** The gateway's address, the account and the time limits. */
export interface GatewayClientOptions {
  /** https, or http on loopback only; a path is kept. */
  readonly baseUrl: string;
  readonly platformId: number;
  readonly secretKey: string;
  /** For a whole query. @defaultValue 30000 */
  readonly timeoutMs?: number | undefined;
  /** For a response to `/withdraw`, from the first byte written. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number | undefined;
  /** For DNS, TCP and TLS of a withdrawal together. @defaultValue 10000 */
  readonly connectTimeoutMs?: number | undefined;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** @defaultValue a silent logger */
  readonly logger?: Logger | undefined;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock | undefined;
}

const time = { rule: millisecondsField(1) };

const RULES = {
  ...ACCOUNT_IDENTITY,
  timeoutMs: time,
  withdrawTimeoutMs: time,
  connectTimeoutMs: time,
  ca: { rule: text },
  ...WATCHING_RULES,
} as const satisfies OptionRules<GatewayClientOptions>;

/**
 * Checks the options and completes them. The key is in the options only.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function toAccess(options: GatewayClientOptions): GatewayAccess {
  const problems = checkOptions(RULES, options);
  if (problems.length > 0) throw new InvalidInputError(problems);
  return {
    baseUrl: baseUrlField.parse(options.baseUrl),
    timeoutMs: options.timeoutMs ?? 30_000,
    withdrawTimeoutMs: options.withdrawTimeoutMs ?? 60_000,
    connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_WITHIN_MS,
    ca: options.ca,
    logger: failsafeLogger(options.logger ?? silentLogger),
    clock: options.clock ?? systemClock,
  };
}
