import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { partialAccountSettingsSchema, type PartialAccountSettings } from '../../account-settings.js';
import { readConfig, type Environment } from '../../config.js';
import { InvalidConfigError } from '../../errors.js';
import { baseUrlField, platformIdField, toProblem } from '../../fields.js';
import type { AccountOptions } from '../../worker/payout-worker.js';

/** The variables that pace and follow an account; in an accounts file each account may set its own. */
const SETTING_VARIABLES = [
  'GATEWAY_TIMEOUT_MS',
  'WITHDRAW_TIMEOUT_MS',
  'WITHDRAW_INTERVAL_MS',
  'LEASE_MS',
  'TAKEOVER_QUARANTINE_MS',
  'IN_FLIGHT_MAX_MS',
  'MAX_REJECTIONS_IN_A_ROW',
  'MAX_UNKNOWNS_IN_A_ROW',
  'STATUS_POLL_MIN_MS',
  'STATUS_POLL_MAX_MS',
  'STATUS_POLL_RATE',
  'PAYOUT_RETENTION_DAYS',
] as const;

const ACCOUNT_VARIABLES = ['GATEWAY_PLATFORM_ID', 'GATEWAY_BASE_URL', 'GATEWAY_SECRET_KEY'] as const;

/** One account in an accounts file: who it is, and what differs from the environment. */
const fileAccountSchema = z.strictObject({
  platformId: platformIdField,
  baseUrl: baseUrlField,
  /** Relative to the accounts file. */
  secretKeyFile: z.string().min(1, 'must not be empty'),
  ...partialAccountSettingsSchema.shape,
});

const accountsFileSchema = z
  .array(fileAccountSchema)
  .min(1, 'must name at least one account')
  .refine((accounts) => new Set(accounts.map(({ platformId }) => platformId)).size === accounts.length, {
    error: 'must name each platformId once',
  });

/**
 * The accounts that a worker process works for: those of `PAYOUT_ACCOUNTS_FILE`, or the one of the environment.
 * @throws InvalidConfigError with every problem; secrets are never shown
 */
export function readWorkerAccounts(environment: Environment): AccountOptions[] {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file !== undefined) {
    const settings = readSettings(environment);
    return readAccountsFile(file).map((account) => ({ ...settings, ...account }));
  }
  const config = readConfig([...ACCOUNT_VARIABLES, ...SETTING_VARIABLES], environment);
  return [
    {
      ...readSettings(environment),
      platformId: config.GATEWAY_PLATFORM_ID,
      baseUrl: config.GATEWAY_BASE_URL,
      secretKey: config.GATEWAY_SECRET_KEY,
    },
  ];
}

function readSettings(environment: Environment): PartialAccountSettings {
  const config = readConfig(SETTING_VARIABLES, environment);
  return {
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    withdrawTimeoutMs: config.WITHDRAW_TIMEOUT_MS,
    intervalMs: config.WITHDRAW_INTERVAL_MS,
    leaseMs: config.LEASE_MS,
    quarantineMs: config.TAKEOVER_QUARANTINE_MS,
    inFlightMaxMs: config.IN_FLIGHT_MAX_MS,
    maxRejectionsInARow: config.MAX_REJECTIONS_IN_A_ROW,
    maxUnknownsInARow: config.MAX_UNKNOWNS_IN_A_ROW,
    pollMinMs: config.STATUS_POLL_MIN_MS,
    pollMaxMs: config.STATUS_POLL_MAX_MS,
    pollRate: config.STATUS_POLL_RATE,
    retentionDays: config.PAYOUT_RETENTION_DAYS,
  };
}

function readAccountsFile(file: string): AccountOptions[] {
  const parsed = accountsFileSchema.safeParse(readJson(file), { reportInput: true });
  if (!parsed.success) {
    throw new InvalidConfigError(
      parsed.error.issues
        .map(toProblem)
        .map(({ field, message }) => ({ field: `PAYOUT_ACCOUNTS_FILE ${field}`, message })),
    );
  }
  return parsed.data.map(({ secretKeyFile, ...account }) => ({
    ...account,
    secretKey: readSecret(resolve(dirname(file), secretKeyFile), account.platformId),
  }));
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new InvalidConfigError([
      { field: 'PAYOUT_ACCOUNTS_FILE', message: `cannot be read: ${(error as Error).message}` },
    ]);
  }
}

function readSecret(file: string, platformId: number): string {
  const field = `secretKeyFile of account ${platformId}`;
  let secret: string;
  try {
    secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new InvalidConfigError([{ field, message: `cannot be read: ${(error as Error).message}` }]);
  }
  if (secret === '') throw new InvalidConfigError([{ field, message: 'is empty' }]);
  return secret;
}
