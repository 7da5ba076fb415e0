import type { Command } from 'commander';
import { untilAborted } from '../../base/clock.js';
import { mayReadOpenSecrets, readConfig, readSettings } from '../../base/config.js';
import { createLogger } from '../../base/create-logger.js';
import { InvalidConfigError, InvalidInputError } from '../../base/errors.js';
import { keyNameField, parseInput, wholeNumberField } from '../../base/fields.js';
import { SERVE_SETTINGS } from '../../base/settings.js';
import { z } from 'zod';
import { type CliContext, outliveHangup } from '../context/cli-context.js';
import { readPlatformIds } from '../context/accounts.js';
import { help } from '../context/flags.js';
import { hasKeyring, readAudiences } from '../context/keys.js';

const VARIABLES = [
  'REDIS_URL',
  'REDIS_REPLICAS',
  'HEALTH_HOST',
  'LOG_LEVEL',
  'PAYOUT_KEYS_FILE',
  'PAYOUT_CHECK_ADDRESSES',
  'PAYOUT_CHECK_PAYMENT_IDS',
  'PAYOUT_REQUIRE_CURRENCIES',
] as const;

export function defineServeCommand(command: Command, context: CliContext): void {
  command.addHelpText(
    'after',
    help(
      `The door enqueues, reads and cancels for clients with a token. It holds no key, signs nothing, and sends nothing (docs/http.md).

Environment: REDIS_URL, GATEWAY_PLATFORM_ID or PAYOUT_ACCOUNTS_FILE, SERVE_TOKENS_FILE, SERVE_HOST (127.0.0.1), SERVE_PORT (3100),
SERVE_TLS_CERT_FILE and SERVE_TLS_KEY_FILE, or SERVE_TRUSTED_PROXIES (one of them is required on an address that other machines can
reach), SERVE_HEALTH_PORT (9466); PAYOUT_KEYS_FILE with PAYOUT_AUDIENCE or GATEWAY_BASE_URL: it then takes signed payouts only.
SIGHUP reads tokens and certificate again; a changed file of tokens is read by itself.`,
      'payouts serve',
      'payouts serve token shop --rights enqueue,read >> ./secrets/serve-tokens.yaml',
    ),
  );
  command
    .command('start', { isDefault: true, hidden: true })
    .description('serve until SIGTERM')
    .action(async () => serve(context));
  command
    .command('token')
    .description('make a token: its line for SERVE_TOKENS_FILE on stdout, the token itself, once, on stderr')
    .argument('<name>', 'the client; cancellations have it as `by`')
    .option('--rights <list>', 'what it may do, of enqueue,read,cancel', 'enqueue,read')
    .option('--per-minute <number>', 'the most requests and payouts a minute (default: no limit)')
    .addHelpText(
      'after',
      help(
        'The file keeps a hash: a lost token cannot be read from it. To change a token, add a second one, then remove the first.',
        'payouts serve token shop --rights enqueue,read,cancel --per-minute 600 >> ./secrets/serve-tokens.yaml',
      ),
    )
    .action(async (name: string, flags: TokenFlags) => makeToken(name, flags, context));
}

async function serve({ environment, stopSignal }: CliContext): Promise<void> {
  refuseGatewaySecret(environment['GATEWAY_SECRET_KEY']);
  const config = readConfig(VARIABLES, environment);
  const settings = readSettings(SERVE_SETTINGS, environment);
  const logger = createLogger(config.LOG_LEVEL);
  const stop = stopSignal();
  // Imported late: other commands start faster.
  const { startDoor } = await import('../../http/start-door.js');
  const door = await startDoor({
    ...settings,
    platformIds: readPlatformIds(environment),
    redisUrl: config.REDIS_URL,
    redisReplicas: config.REDIS_REPLICAS,
    checkAddresses: config.PAYOUT_CHECK_ADDRESSES,
    checkPaymentIds: config.PAYOUT_CHECK_PAYMENT_IDS,
    requireCurrencies: config.PAYOUT_REQUIRE_CURRENCIES,
    keysFile: config.PAYOUT_KEYS_FILE,
    audiences: hasKeyring(environment) ? readAudiences(environment) : new Map(),
    healthHost: config.HEALTH_HOST,
    mayBeOpen: mayReadOpenSecrets(environment),
    logger,
  });
  outliveHangup(() => {
    door.reload();
  });
  logger.info({ url: door.url, health: door.healthUrl }, 'the HTTP door serves');
  await untilAborted(stop);
  await door.close();
  logger.info({}, 'the HTTP door has stopped');
}

/** Who takes over the door must find nothing that pays. */
function refuseGatewaySecret(secret: string | undefined): void {
  if (secret === undefined || secret === '') return;
  const message = 'must not be set: the HTTP door needs no gateway secret, and must not hold one';
  throw new InvalidConfigError([{ field: 'GATEWAY_SECRET_KEY', message }]);
}

interface TokenFlags {
  readonly rights: string;
  readonly perMinute?: string;
}

async function makeToken(name: string, flags: TokenFlags, { environment, write, writeError }: CliContext) {
  const { createToken, RIGHTS } = await import('../../http/tokens.js');
  const rule = z.object({
    name: keyNameField,
    '--rights': z.array(z.enum(RIGHTS, `must be of ${RIGHTS.join(',')}`)),
    '--per-minute': wholeNumberField(1).optional(),
  });
  const parsed = parseInput(rule, {
    name,
    '--rights': [...new Set(flags.rights.split(','))],
    '--per-minute': flags.perMinute === undefined ? undefined : Number(flags.perMinute),
  });
  const [account, ...others] = readPlatformIds(environment);
  if (account === undefined || others.length > 0) {
    throw new InvalidInputError([{ field: '--account', message: 'is required: a token is for one account' }]);
  }
  const { token, line } = createToken({
    name: parsed.name,
    account,
    rights: parsed['--rights'],
    perMinute: parsed['--per-minute'],
  });
  write(`${line}\n`);
  writeError(`The token of ${parsed.name}, shown once:\n${token}\n`);
}
