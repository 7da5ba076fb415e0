import { dirname, resolve } from 'node:path';
import { readConfig, type Environment } from '../../config.js';
import { InvalidConfigError, InvalidInputError } from '../../errors.js';
import { parseInput, platformIdField } from '../../fields.js';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, CONTROL_SETTINGS } from '../../settings.js';
import { z } from 'zod';
import { parseAccountsFile } from './worker-accounts.js';

/** Which accounts a command is about: `all` are those of the accounts file, where none is chosen. */
export type AccountScope = 'one' | 'all' | 'none';

type FileAccount = ReturnType<typeof parseAccountsFile>[number];

/**
 * The environment of one account: that of `--account`, the one of GATEWAY_PLATFORM_ID, or the only one of the accounts file,
 * whose settings then stand under their variables. Where none of them says which, only reading GATEWAY_PLATFORM_ID fails:
 * some commands can do without.
 * @param given - what `--account` says
 * @throws InvalidInputError when there is no such account; InvalidConfigError when the accounts file is not usable
 */
export function chooseAccount(environment: Environment, given: string | undefined, scope: 'one' | 'all'): Environment {
  const chosen = given === undefined ? undefined : parseAccount(given);
  const { PAYOUT_ACCOUNTS_FILE: file } = readConfig(['PAYOUT_ACCOUNTS_FILE'], environment);
  if (file === undefined) return chosen === undefined ? environment : chooseOnly(environment, chosen);
  if (scope !== 'one' && chosen === undefined) return environment;
  const accounts = parseAccountsFile(file);
  const ofEnvironment = environment['GATEWAY_PLATFORM_ID'] || undefined;
  const wanted = chosen ?? (ofEnvironment === undefined ? undefined : Number(ofEnvironment));
  const found =
    wanted === undefined && accounts.length === 1
      ? accounts[0]
      : accounts.find(({ platformId }) => platformId === wanted);
  if (found !== undefined) return toEnvironment(environment, found, file);
  const ids = accounts.map(({ platformId }) => platformId).join(', ');
  if (wanted === undefined) return refusingAccount(environment, ids);
  if (String(wanted) === ofEnvironment) return environment;
  const message = `is not in PAYOUT_ACCOUNTS_FILE, which has ${ids} (got "${wanted}")`;
  throw new InvalidInputError([{ field: '--account', message }]);
}

function parseAccount(text: string): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : text;
  return parseInput(z.object({ '--account': platformIdField }), { '--account': number })['--account'];
}

/** The environment has an account of its own, whose secret is not that of another. */
function chooseOnly(environment: Environment, chosen: number): Environment {
  const own = environment['GATEWAY_PLATFORM_ID'] || undefined;
  if (own === undefined || own === String(chosen)) return { ...environment, GATEWAY_PLATFORM_ID: String(chosen) };
  const message = `is not the account of GATEWAY_PLATFORM_ID, which is ${own} (got "${chosen}")`;
  throw new InvalidInputError([{ field: '--account', message }]);
}

function toEnvironment(
  environment: Environment,
  { platformId, baseUrl, secretKeyFile, signingKeyFile, signingKeyName, ...settings }: FileAccount,
  file: string,
): Environment {
  const variables = Object.fromEntries(
    Object.entries(settings).map(([name, value]): [string, string] => [
      ACCOUNT_SETTINGS[name as keyof typeof ACCOUNT_SETTINGS].variable,
      String(value),
    ]),
  );
  const signing =
    signingKeyFile === undefined
      ? {}
      : {
          [CONTROL_SETTINGS.signingKeyFile.variable]: resolve(dirname(file), signingKeyFile),
          [CONTROL_SETTINGS.signingKeyName.variable]: signingKeyName,
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
    [`${secretKey}_FILE`]: resolve(dirname(file), secretKeyFile),
  };
}

function refusingAccount(environment: Environment, ids: string): Environment {
  return {
    ...environment,
    get GATEWAY_PLATFORM_ID(): string {
      const message = `is required: PAYOUT_ACCOUNTS_FILE has the accounts ${ids}`;
      throw new InvalidConfigError([{ field: '--account', message }]);
    },
  };
}
