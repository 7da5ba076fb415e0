import { ConflictError, InvalidInputError, TransactionMismatchError } from '../../errors.js';

/** Options of the library that the command line calls otherwise. */
const FLAGS: Readonly<Record<string, string>> = {
  journalDirs: '--journal',
  keyFile: '--key',
  sshKeyFile: '--ssh-key',
};

/**
 * Runs `work` and names the options in its errors as an operator types them: `payoutId` becomes `--payout-id`.
 * @throws what `work` throws
 */
export async function nameFlags<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TransactionMismatchError) {
      throw new ConflictError(`${error.message}; --force takes the txhash unchecked`, error.fields);
    }
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.problems.map(({ field, message }) => ({ field: toFlag(field), message })));
  }
}

function toFlag(field: string): string {
  // It names a flag already.
  if (field.startsWith('--')) return field;
  return FLAGS[field] ?? `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
