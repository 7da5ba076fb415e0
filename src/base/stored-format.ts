import { UnsupportedFormatError } from './errors.js';

/**
 * The format of a ledger in Redis and of a send journal on disk: what their keys, fields and lines mean. A ledger has it
 * in `ledger.format`, each file of a journal in its first line. Another format is refused, and left as it is.
 *
 * A version that changes a stored form gives it the next number, and reads the earlier one here, or converts it
 * (docs/runbooks/upgrade.md).
 */
export const STORED_FORMAT = 1;

/** @param stored - what has it, such as "ledger in Redis" @param format - the number that was read */
export function otherFormat(stored: string, format: unknown): UnsupportedFormatError {
  return new UnsupportedFormatError(
    `The ${stored} has format ${String(format)}; this version of payout-queue reads format ${STORED_FORMAT}. Run the version that wrote it.`,
  );
}
