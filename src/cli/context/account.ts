import type { PayoutOperator } from '../../control/payout-operator.js';
import type { PayoutProducer, PayoutProducerOptions } from '../../control/payout-producer.js';
import type { ArchiveFolder } from '../../archive/archive-files.js';
import { systemClock, within } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import { InvalidConfigError, NotFoundError, PayoutError } from '../../base/errors.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { Currency, GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { type AccountConnectionOptions, type LedgerAccess, openLedger } from '../../queues/open-ledger.js';
import type { CliContext } from './cli-context.js';
import { nameFlags } from './flags.js';
import type { Decider } from './signer.js';

export function readAccountOptions({ environment, logger }: CliContext): AccountConnectionOptions {
  const config = readConfig(['REDIS_URL', 'REDIS_REPLICAS', 'GATEWAY_PLATFORM_ID'], environment);
  return {
    redisUrl: config.REDIS_URL,
    redisReplicas: config.REDIS_REPLICAS,
    platformId: config.GATEWAY_PLATFORM_ID,
    logger,
  };
}

export async function withAccount<Result>(
  context: CliContext,
  use: (account: LedgerAccess) => Promise<Result>,
): Promise<Result> {
  const account = openLedger(readAccountOptions(context));
  try {
    return await use(account);
  } finally {
    await account.close();
  }
}

/**
 * Closes the operator after `use`, also if it fails. Input errors name the flags.
 * @param decider - signs what workers with a keyring require
 */
export async function withOperator<Result>(
  context: CliContext,
  use: (operator: PayoutOperator) => Promise<Result>,
  decider?: Decider,
): Promise<Result> {
  const { PayoutOperator } = await import('../../control/payout-operator.js');
  const operator = new PayoutOperator({ ...readAccountOptions(context), ...decider });
  try {
    return await nameFlags(async () => use(operator));
  } finally {
    await operator.close();
  }
}

/**
 * Closes the producer after `use`, also if it fails.
 * @param signing - needed only by a command that enqueues
 */
export async function withProducer<Result>(
  context: CliContext,
  use: (producer: PayoutProducer) => Promise<Result>,
  signing: Pick<
    PayoutProducerOptions,
    'signer' | 'audience' | 'checkAddresses' | 'checkPaymentIds' | 'requireCurrencies'
  > = {},
): Promise<Result> {
  const { PayoutProducer } = await import('../../control/payout-producer.js');
  const producer = new PayoutProducer({ ...readAccountOptions(context), ...signing });
  try {
    return await use(producer);
  } finally {
    await producer.close();
  }
}

export async function withGateway<Result>(
  { environment }: CliContext,
  use: (gateway: Gateway) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(['GATEWAY_PLATFORM_ID', 'GATEWAY_TIMEOUT_MS'], environment);
  const [{ openGateway }, { readOwnGateway }, { silentLogger }] = await Promise.all([
    import('../../gateway/open-gateway.js'),
    import('./accounts.js'),
    import('../../base/logger.js'),
  ]);
  const own = await readOwnGateway(environment);
  const gateway = openGateway({
    ...(own === undefined ? readApiAccess(environment) : { gateway: own }),
    platformId: config.GATEWAY_PLATFORM_ID,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    clock: systemClock,
    // A failed call throws, and its error is shown.
    logger: silentLogger,
  });
  try {
    return await use(gateway);
  } finally {
    gateway.close();
  }
}

function readApiAccess(environment: CliContext['environment']) {
  const config = readConfig(['GATEWAY_API', 'GATEWAY_BASE_URL', 'GATEWAY_SECRET_KEY'], environment);
  return { api: config.GATEWAY_API, baseUrl: config.GATEWAY_BASE_URL, secretKey: config.GATEWAY_SECRET_KEY };
}

/** A file can be checked without Redis. */
const READ_WITHIN_MS = 2_000;

/** @returns undefined if Redis is not configured or does not answer in time */
async function ifReachable<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await within(READ_WITHIN_MS, read());
  } catch (error) {
    if (error instanceof PayoutError) return undefined;
    throw error;
  }
}

/** As the sender cached them. Without them, ids are shown. */
export async function readCurrencies(context: CliContext): Promise<readonly Currency[]> {
  return (await readFacts(context))?.currencies ?? [];
}

/** @returns undefined if Redis cannot be read */
export async function readFacts(context: CliContext): Promise<GatewayFacts | undefined> {
  const { readGatewayFacts } = await import('../../ledger/reads/gateway-facts.js');
  return ifReachable(async () => withAccount(context, async ({ ledger }) => readGatewayFacts(ledger.connection)));
}

export interface JournalFolder {
  readonly dir: string;
  readonly platformId: number;
}

export function readJournalFolder({ environment }: CliContext): JournalFolder {
  const config = readConfig(['SEND_JOURNAL_DIR', 'GATEWAY_PLATFORM_ID'], environment);
  return { dir: config.SEND_JOURNAL_DIR, platformId: config.GATEWAY_PLATFORM_ID };
}

export function noJournal({ dir, platformId }: JournalFolder): NotFoundError {
  return new NotFoundError(
    `No send journal of account ${platformId} in ${dir}. Run the command on the worker's host, with its SEND_JOURNAL_DIR`,
  );
}

export function readArchiveFolder({ environment }: Pick<CliContext, 'environment'>): ArchiveFolder | undefined {
  const config = readConfig(['PAYOUT_ARCHIVE_DIR', 'GATEWAY_PLATFORM_ID'], environment);
  const dir = config.PAYOUT_ARCHIVE_DIR;
  return dir === undefined ? undefined : { dir, platformId: config.GATEWAY_PLATFORM_ID };
}

export function requireArchiveFolder(context: Pick<CliContext, 'environment'>): ArchiveFolder {
  const folder = readArchiveFolder(context);
  if (folder !== undefined) return folder;
  const message = 'is required with --archived: the folder of the worker, on its host';
  throw new InvalidConfigError([{ field: 'PAYOUT_ARCHIVE_DIR', message }]);
}

/** @throws InvalidConfigError if the folder or a file cannot be read */
export async function namingArchive<Result>(folder: ArchiveFolder, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { syscall, message: cause } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    const { folderPath } = await import('../../archive/archive-files.js');
    const message = `${folderPath(folder)} cannot be read: ${cause}. Name the folder of the worker, and run the command as a user who may read it`;
    throw new InvalidConfigError([{ field: 'PAYOUT_ARCHIVE_DIR', message }]);
  }
}
