import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { z } from 'zod';
import { ConflictError, InvalidInputError, TransactionMismatchError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { type Actor, parseActor } from '../../ledger/payout.js';

/**
 * Adds `--reason` and `--by` to a command.
 * @param defaultReason - without one, `--reason` must be given
 */
export function addActorOptions(command: Command, defaultReason?: string): Command {
  const withReason =
    defaultReason === undefined
      ? command.requiredOption('--reason <text>', 'why; kept in the history (required)')
      : command.option('--reason <text>', 'why; kept in the history', defaultReason);
  return withReason.option('--by <name>', 'who decided; kept in the history', systemUser());
}

/** @throws InvalidInputError when a text is empty, too long or more than one line */
export async function readActor(flags: Actor): Promise<Actor> {
  return nameFlags(() => parseActor(flags));
}

/** Who called `sudo`, where the command runs as the worker's user. In a container the user may have a number only. */
function systemUser(): string {
  try {
    return process.env['SUDO_USER'] ?? userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

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

const schema = z.object({ '--limit': z.coerce.number().int('must be a whole number').min(1, 'must be at least 1') });

/** The number of `--limit`. @throws InvalidInputError */
export function parseLimit(text: string): number {
  return parseInput(schema, { '--limit': text })['--limit'];
}
