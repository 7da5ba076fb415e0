import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import {
  ACCOUNT_IDENTITY,
  ACCOUNT_SETTINGS,
  CONTROL_SETTINGS,
  partialAccountSettingsSchema,
  WORKER_COMMAND_SETTINGS,
} from '../../base/settings.js';
import { type Environment, mayReadOpenSecrets, readConfig, readSettings } from '../../base/config.js';
import { InvalidConfigError, InvalidInputError } from '../../base/errors.js';
import { parseInput, platformIdField, toProblems } from '../../base/fields.js';
import { parseJson } from '../../base/parse-json.js';
import { resolveSigner } from '../../control/keys/signer.js';
import { readSecretFile, readTrustedFile } from '../../base/trusted-file.js';
import type { OwnGateway } from '../../gateway/gateway.js';
import type { GatewayAccess } from '../../gateway/open-gateway.js';
import type { AccountOptions } from '../../worker/core-worker.js';

const GATEWAY_FILE = WORKER_COMMAND_SETTINGS.gatewayFile.variable;

/** `all` means those of the accounts file, unless one is chosen. */
export type AccountScope = 'one' | 'all' | 'none';

type FileAccount = ReturnType<typeof parseAccountsFile>[number];

export type ChosenAccount =
  | { readonly kind: 'chosen'; readonly environment: Environment }
  /** No setting chooses one of several accounts. A command that needs one then misses GATEWAY_PLATFORM_ID. */
  | { readonly kind: 'open'; readonly environment: Environment; readonly platformIds: readonly number[] };

/**
 * Chooses the account of `--account`, of GATEWAY_PLATFORM_ID, or the only one of the accounts file. The returned
 * environment has its settings.
 * @throws InvalidInputError if there is no such account
 */
export function chooseAccount(
  environment: Environment,
  given: string | undefined,
  scope: 'one' | 'all',
): ChosenAccount {
  const asked = given === undefined ? undefined : parseAccount(given);
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return chosen(asked === undefined ? environment : chooseOnly(environment, asked));
  if (scope === 'all' && asked === undefined) return chosen(environment);
  const accounts = parseAccountsFile(file);
  const platformIds = accounts.map(({ platformId }) => platformId);
  const ofEnvironment = environment['GATEWAY_PLATFORM_ID'] || undefined;
  const only = platformIds.length === 1 ? platformIds[0] : undefined;
  const wanted = asked ?? (ofEnvironment === undefined ? only : Number(ofEnvironment));
  if (wanted === undefined) return { kind: 'open', environment, platformIds };
  const found = accounts.find(({ platformId }) => platformId === wanted);
  if (found !== undefined) return chosen(toEnvironment(environment, found, file));
  if (String(wanted) === ofEnvironment) return chosen(environment);
  const message = `is not in PAYOUT_ACCOUNTS_FILE, which has ${platformIds.join(', ')} (got "${wanted}")`;
  throw new InvalidInputError([{ field: '--account', message }]);
}

/** Names the accounts if GATEWAY_PLATFORM_ID is missing. */
export function nameAccounts(error: unknown, account: ChosenAccount): unknown {
  if (account.kind === 'chosen' || !(error instanceof InvalidConfigError)) return error;
  if (!error.problems.some(({ field }) => field === ACCOUNT_IDENTITY.platformId.variable)) return error;
  const message = `is required: PAYOUT_ACCOUNTS_FILE has the accounts ${account.platformIds.join(', ')}`;
  return new InvalidConfigError([{ field: '--account', message }]);
}

function chosen(environment: Environment): ChosenAccount {
  return { kind: 'chosen', environment };
}

function parseAccount(text: string): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : text;
  return parseInput(z.object({ '--account': platformIdField }), { '--account': number })['--account'];
}

/** Refuses another account: the environment's secret belongs to its own. */
function chooseOnly(environment: Environment, chosen: number): Environment {
  const own = environment['GATEWAY_PLATFORM_ID'] || undefined;
  if (own === undefined || own === String(chosen)) return { ...environment, GATEWAY_PLATFORM_ID: String(chosen) };
  const message = `is not the account of GATEWAY_PLATFORM_ID, which is ${own} (got "${chosen}")`;
  throw new InvalidInputError([{ field: '--account', message }]);
}

function toEnvironment(
  environment: Environment,
  { platformId, baseUrl, secretKeyFile, gateway, signer, signerName, ...settings }: FileAccount,
  file: string,
): Environment {
  const variables = Object.fromEntries(
    Object.entries(settings).map(([name, value]): [string, string] => [
      ACCOUNT_SETTINGS[name as keyof typeof ACCOUNT_SETTINGS].variable,
      String(value),
    ]),
  );
  const signing =
    signer === undefined
      ? {}
      : {
          [CONTROL_SETTINGS.signer.variable]: resolveSigner(signer, dirname(file)),
          [CONTROL_SETTINGS.signerName.variable]: signerName,
        };
  const secretKey = ACCOUNT_IDENTITY.secretKey.variable;
  return {
    ...environment,
    PAYOUT_ACCOUNTS_FILE: undefined,
    ...variables,
    ...signing,
    [ACCOUNT_IDENTITY.platformId.variable]: String(platformId),
    [ACCOUNT_IDENTITY.baseUrl.variable]: baseUrl,
    [secretKey]: undefined,
    [`${secretKey}_FILE`]: secretKeyFile && resolve(dirname(file), secretKeyFile),
    [GATEWAY_FILE]: gateway,
  };
}

const fileAccountSchema = z
  .strictObject({
    platformId: ACCOUNT_IDENTITY.platformId.rule,
    baseUrl: ACCOUNT_IDENTITY.baseUrl.rule.optional(),
    /** Relative to the accounts file. */
    secretKeyFile: z.string().min(1, 'must not be empty').optional(),
    /** The module of a gateway of its own, in place of both; relative to the accounts file. */
    gateway: WORKER_COMMAND_SETTINGS.gatewayFile.rule.optional(),
    /** Relative to the accounts file. Both replace `PAYOUT_SIGNER` and `PAYOUT_SIGNER_NAME`. */
    signer: CONTROL_SETTINGS.signer.rule.optional(),
    signerName: CONTROL_SETTINGS.signerName.rule.optional(),
    ...partialAccountSettingsSchema.shape,
  })
  .superRefine(({ baseUrl, secretKeyFile, gateway }, context) => {
    for (const [name, value] of Object.entries({ baseUrl, secretKeyFile })) {
      if ((value === undefined) !== (gateway === undefined)) continue;
      const message = gateway === undefined ? 'is missing' : 'must be absent, because gateway is set';
      context.addIssue({ code: 'custom', path: [name], message, input: '' });
    }
  })
  .superRefine(({ signer, signerName }, context) => {
    if ((signer === undefined) === (signerName === undefined)) return;
    const [given, missing] = signerName === undefined ? ['signer', 'signerName'] : ['signerName', 'signer'];
    context.addIssue({ code: 'custom', path: [missing], message: `is required, because ${given} is set`, input: '' });
  });

const accountsFileSchema = z
  .array(fileAccountSchema)
  .min(1, 'must name at least one account')
  .refine((accounts) => new Set(accounts.map(({ platformId }) => platformId)).size === accounts.length, {
    error: 'must name each platformId once',
  });

/** @throws InvalidConfigError with every problem, without secrets */
export async function readWorkerAccounts(environment: Environment): Promise<AccountOptions[]> {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return [await readOnlyAccount(environment)];
  const settings = readSettings(ACCOUNT_SETTINGS, environment);
  const accounts = await readAccountsFile(file, mayReadOpenSecrets(environment));
  return accounts.map((account) => ({ ...settings, ...account }));
}

async function readOnlyAccount(environment: Environment): Promise<AccountOptions> {
  const gateway = await readOwnGateway(environment);
  if (gateway === undefined) return readSettings({ ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS }, environment);
  const { platformId } = ACCOUNT_IDENTITY;
  return { ...readSettings({ platformId, ...ACCOUNT_SETTINGS }, environment), gateway };
}

/** @returns undefined if the account has the gateway of the API. @throws InvalidConfigError */
export async function readOwnGateway(environment: Environment): Promise<OwnGateway | undefined> {
  const { [GATEWAY_FILE]: file } = readConfig([GATEWAY_FILE], environment);
  if (file === undefined) return undefined;
  const { baseUrl } = ACCOUNT_IDENTITY;
  if (environment[baseUrl.variable])
    throw new InvalidConfigError([{ field: GATEWAY_FILE, message: `must not be set beside ${baseUrl.variable}` }]);
  const { loadGateway } = await import('./load-gateway.js');
  return loadGateway(resolve(file), GATEWAY_FILE);
}

export function readPlatformIds(environment: Environment): number[] {
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return [readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID];
  return parseAccountsFile(file).map(({ platformId }) => platformId);
}

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

async function readAccountsFile(file: string, mayBeReadable: boolean): Promise<AccountOptions[]> {
  const readAccess = async (
    platformId: number,
    { baseUrl, secretKeyFile, gateway }: Pick<FileAccount, 'baseUrl' | 'secretKeyFile' | 'gateway'>,
  ): Promise<GatewayAccess> => {
    if (baseUrl !== undefined && secretKeyFile !== undefined) {
      const path = resolve(dirname(file), secretKeyFile);
      return { baseUrl, secretKey: readSecretKey(path, platformId, mayBeReadable) };
    }
    const { loadGateway } = await import('./load-gateway.js');
    return { gateway: await loadGateway(gateway ?? '', `gateway of account ${platformId}`) };
  };
  return Promise.all(
    // A worker signs no payouts: it ignores their signer.
    parseAccountsFile(file).map(async ({ baseUrl, secretKeyFile, gateway, ...account }) => ({
      ...account,
      signer: undefined,
      signerName: undefined,
      ...(await readAccess(account.platformId, { baseUrl, secretKeyFile, gateway })),
    })),
  );
}

/** Resolves the paths of policies and gateways. Reads no secrets. */
export function parseAccountsFile(file: string): z.output<typeof accountsFileSchema> {
  const parsed = accountsFileSchema.safeParse(readJsonFile(file), { reportInput: true });
  if (!parsed.success) {
    throw new InvalidConfigError(
      toProblems(parsed.error.issues, accountsFileSchema, '').map(({ field, message }) => ({
        field: `PAYOUT_ACCOUNTS_FILE ${field}`.trim(),
        message,
      })),
    );
  }
  const besideFile = (path: string): string => resolve(dirname(file), path);
  return parsed.data.map(({ policyFile, gateway, ...account }) => ({
    ...account,
    ...(policyFile !== undefined && { policyFile: besideFile(policyFile) }),
    ...(gateway !== undefined && { gateway: besideFile(gateway) }),
  }));
}

function readJsonFile(file: string): unknown {
  try {
    // It says which gateway is paid from, and by which policy.
    return parseJson(readTrustedFile(file), file);
  } catch (error) {
    if (error instanceof InvalidInputError) {
      throw new InvalidConfigError([{ field: 'PAYOUT_ACCOUNTS_FILE', message: `cannot be used: ${error.message}` }]);
    }
    throw new InvalidConfigError([
      { field: 'PAYOUT_ACCOUNTS_FILE', message: `cannot be used: ${file} ${(error as Error).message}` },
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
