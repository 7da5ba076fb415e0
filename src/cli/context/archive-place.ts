import { folderPath, type ArchiveFolder } from '../../archive/archive-files.js';
import { readConfig } from '../../config.js';
import { InvalidConfigError } from '../../errors.js';
import type { CliContext } from './cli-context.js';

/**
 * Where the archive of the environment's account is; undefined where the environment names none.
 * @throws InvalidConfigError when the environment is not usable
 */
export function readArchiveFolder({ environment }: Pick<CliContext, 'environment'>): ArchiveFolder | undefined {
  const config = readConfig(['PAYOUT_ARCHIVE_DIR', 'GATEWAY_PLATFORM_ID'], environment);
  const dir = config.PAYOUT_ARCHIVE_DIR;
  return dir === undefined ? undefined : { dir, platformId: config.GATEWAY_PLATFORM_ID };
}

/** As {@link readArchiveFolder}. @throws InvalidConfigError also where the environment names none */
export function requireArchiveFolder(context: Pick<CliContext, 'environment'>): ArchiveFolder {
  const folder = readArchiveFolder(context);
  if (folder !== undefined) return folder;
  const message = 'is required with --archived: the folder of the worker, on its host';
  throw new InvalidConfigError([{ field: 'PAYOUT_ARCHIVE_DIR', message }]);
}

/**
 * Runs `work`, which reads the archive.
 * @throws InvalidConfigError where a file or the folder cannot be read; else what `work` throws
 */
export async function namingArchive<Result>(folder: ArchiveFolder, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { syscall, message: cause } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    const message = `${folderPath(folder)} cannot be read: ${cause}. Name the folder of the worker, and run the command as a user who may read it`;
    throw new InvalidConfigError([{ field: 'PAYOUT_ARCHIVE_DIR', message }]);
  }
}
