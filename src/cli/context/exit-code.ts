import { CommanderError } from 'commander';
import { toPlainText } from '../../base/plain-text.js';
import { InvalidConfigError, InvalidInputError, PayoutError, type ErrorCode } from '../../base/errors.js';

export const EXIT_CODES = { done: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, notVerified: 5 } as const;

const EXIT_CODE_OF: Partial<Record<ErrorCode, number>> = {
  INVALID_INPUT: EXIT_CODES.usage,
  INVALID_CONFIG: EXIT_CODES.usage,
  NOT_FOUND: EXIT_CODES.notFound,
  CONFLICT: EXIT_CODES.conflict,
  NOT_VERIFIED: EXIT_CODES.notVerified,
};

/** The command finished and printed problems. */
export class CommandFailedError extends Error {}

/** The command finished and printed altered data, or a missing or wrong signature. */
export class UntrustedError extends CommandFailedError {}

export function toExitCode(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.usage;
  if (error instanceof UntrustedError) return EXIT_CODES.notVerified;
  return (error instanceof PayoutError ? EXIT_CODE_OF[error.code] : undefined) ?? EXIT_CODES.failed;
}

/** One line a problem. Empty if the error was printed already. */
export function describeError(error: unknown): string {
  if (error instanceof CommanderError || error instanceof CommandFailedError) return '';
  if (error instanceof InvalidInputError || error instanceof InvalidConfigError) {
    return error.problems.map(({ field, message }) => `payouts: ${toPlainText(`${field}: ${message}`)}\n`).join('');
  }
  if (error instanceof PayoutError) return `payouts: ${toPlainText(error.message)}\n`;
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `payouts: internal error, please report it:\n${detail}\n`;
}
