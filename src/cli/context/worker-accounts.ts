import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { partialAccountSettingsSchema, audienceOf } from '../../account-settings.js';
import { mayReadOpenSecrets, readConfig, readSettings, type Environment } from '../../config.js';
import { InvalidConfigError } from '../../errors.js';
import { toProblem } from '../../fields.js';
import { readSecretFile } from '../../trusted-file.js';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, CONTROL_SETTINGS } from '../../settings.js';
import type { AccountOptions } from '../../worker/payout-worker.js';
import { readAudience } from './audience.js';

/** One account in an accounts file: its identity, and what differs from the environment. */
const fileAccountSchema = z
  .strictObject({
    platformId: ACCOUNT_IDENTITY.platformId.rule,
    baseUrl: ACCOUNT_IDENTITY.baseUrl.rule,
    /** Relative to the accounts file. */
    secretKeyFile: z.string().min(1, 'must not be empty'),
    /** Relative to the accounts file; in place of `PAYOUT_SIGNING_KEY_FILE`, and so is the name. */
    signingKeyFile: CONTROL_SETTINGS.signingKeyFile.rule.optional(),
    signingKeyName: CONTROL_SETTINGS.signingKeyName.rule.optional(),
    ...partialAccountSettingsSchema.shape,
  })
  .superRefine(({ signingKeyFile, signingKeyName }, context) => {
    if ((signingKeyFile === undefined) === (signingKeyName === undefined)) return;
    const [given, missing] =
      signingKeyName === undefined ? ['signingKeyFile', 'signingKeyName'] : ['signingKeyName', 'signingKeyFile'];
    context.addIssue({ code: 'custom', path: [missing], message: `is required, because ${given} is set`, input: '' });
  });

const accountsFileSchema = z
  .array(fileAccountSchema)
  .min(1, 'must name at least one account')
  .refine((accounts) => new Set(accounts.map(({ platformId }) => platformId)).size === accounts.length, {
    error: 'must name each platformId once',
  });

/**
 * The accounts of a worker process: those of `PAYOUT_ACCOUNTS_FILE`, or the one of the environment.
 * @throws InvalidConfigError with every problem; secrets are never shown
 */
export function readWorkerAccounts(environment: Environment): AccountOptions[] {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return [readSettings({ ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS }, environment)];
  const settings = readSettings(ACCOUNT_SETTINGS, environment);
  return readAccountsFile(file, mayReadOpenSecrets(environment)).map((account) => ({ ...settings, ...account }));
}

/**
 * Which accounts there are: those of `PAYOUT_ACCOUNTS_FILE`, or the one of the environment. Their secrets are not read.
 * @throws InvalidConfigError with every problem
 */
export function readPlatformIds(environment: Environment): number[] {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return [readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID];
  return parseAccountsFile(file).map(({ platformId }) => platformId);
}

/**
 * The policy of each account of {@link readPlatformIds} that has one.
 * @throws InvalidConfigError with every problem
 */
export function readPolicyFiles(environment: Environment): ReadonlyMap<number, string> {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  const { policyFile: common } = readSettings({ policyFile: ACCOUNT_SETTINGS.policyFile }, environment);
  const accounts =
    file === undefined
      ? readPlatformIds(environment).map((platformId) => ({ platformId, policyFile: undefined }))
      : parseAccountsFile(file);
  return new Map(
    accounts.flatMap(({ platformId, policyFile = common }) =>
      policyFile === undefined ? [] : [[platformId, policyFile] as const],
    ),
  );
}

/**
 * For which environment each account of {@link readPlatformIds} signs.
 * @throws InvalidConfigError with every problem
 */
export function readAudiences(environment: Environment): ReadonlyMap<number, string> {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return new Map(readPlatformIds(environment).map((id) => [id, readAudience(environment)]));
  const { PAYOUT_AUDIENCE: common } = readConfig(['PAYOUT_AUDIENCE'], environment);
  return new Map(
    parseAccountsFile(file).map((account) => [account.platformId, audienceOf({ audience: common, ...account })]),
  );
}

function readAccountsFile(file: string, mayBeReadable: boolean): AccountOptions[] {
  // A worker signs no payouts: it passes over the signing key.
  return parseAccountsFile(file).map(({ secretKeyFile, ...account }) => ({
    ...account,
    secretKey: readSecretKey(resolve(dirname(file), secretKeyFile), account.platformId, mayBeReadable),
  }));
}

/**
 * The accounts of a file, with the paths of their policies as this process finds them. Their secrets are not read.
 * @throws InvalidConfigError with every problem
 */
export function parseAccountsFile(file: string): z.output<typeof accountsFileSchema> {
  const parsed = accountsFileSchema.safeParse(readJsonFile(file), { reportInput: true });
  if (!parsed.success) {
    throw new InvalidConfigError(
      parsed.error.issues
        .map(toProblem)
        .map(({ field, message }) => ({ field: `PAYOUT_ACCOUNTS_FILE ${field}`, message })),
    );
  }
  return parsed.data.map(({ policyFile, ...account }) =>
    policyFile === undefined ? account : { ...account, policyFile: resolve(dirname(file), policyFile) },
  );
}

function readJsonFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new InvalidConfigError([
      { field: 'PAYOUT_ACCOUNTS_FILE', message: `cannot be read: ${(error as Error).message}` },
    ]);
  }
}

function readSecretKey(file: string, platformId: number, mayBeReadable: boolean): string {
  const field = `secretKeyFile of account ${platformId}`;
  let secret: string;
  try {
    secret = readSecretFile(file, mayBeReadable);
  } catch (error) {
    throw new InvalidConfigError([{ field, message: (error as Error).message }]);
  }
  if (secret === '') throw new InvalidConfigError([{ field, message: 'is empty' }]);
  return secret;
}
