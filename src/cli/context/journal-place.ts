import { readConfig } from '../../config.js';
import { NotFoundError } from '../../errors.js';
import type { CliContext } from './cli-context.js';

/** Where the send journal of the environment's account is. */
export interface JournalFolder {
  readonly dir: string;
  readonly platformId: number;
}

/** @throws InvalidConfigError when the environment is not usable */
export function readJournalFolder({ environment }: CliContext): JournalFolder {
  const config = readConfig(['SEND_JOURNAL_DIR', 'GATEWAY_PLATFORM_ID'], environment);
  return { dir: config.SEND_JOURNAL_DIR, platformId: config.GATEWAY_PLATFORM_ID };
}

/** Why a command that only reads, or changes what is there, finds nothing. */
export function noJournal({ dir, platformId }: JournalFolder): NotFoundError {
  return new NotFoundError(
    `No send journal of account ${platformId} in ${dir}. Run the command on the worker's host, with its SEND_JOURNAL_DIR`,
  );
}
