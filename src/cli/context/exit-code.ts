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

/** A command finished and printed the problems that it found; it exits as failed. */
export class CommandFailedError extends Error {}

/** A command finished and printed what does not verify: it was altered, or a signature is missing or wrong. */
export class UntrustedError extends CommandFailedError {}

/** The exit code of a command that ended with this error. */
export function toExitCode(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.usage;
  if (error instanceof UntrustedError) return EXIT_CODES.notVerified;
  return (error instanceof PayoutError ? EXIT_CODE_OF[error.code] : undefined) ?? EXIT_CODES.failed;
}

/** An error as text, one line a problem. Commander and a command that failed have printed theirs already. */
export function describeError(error: unknown): string {
  if (error instanceof CommanderError || error instanceof CommandFailedError) return '';
  if (error instanceof InvalidInputError || error instanceof InvalidConfigError) {
    return error.problems.map(({ field, message }) => `payouts: ${toPlainText(`${field}: ${message}`)}\n`).join('');
  }
  if (error instanceof PayoutError) return `payouts: ${toPlainText(error.message)}\n`;
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `payouts: internal error, please report it:\n${detail}\n`;
}
