import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { z } from 'zod';
import { ConflictError, InvalidInputError, TransactionMismatchError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { type Actor, parseActor } from '../../ledger/payout.js';

/** @param defaultReason - without it, `--reason` is required */
export function addActorOptions(command: Command, defaultReason?: string): Command {
  const withReason =
    defaultReason === undefined
      ? command.requiredOption('--reason <text>', 'why; kept in the history (required)')
      : command.option('--reason <text>', 'why; kept in the history', defaultReason);
  return withReason.option('--by <name>', 'who decided; kept in the history', systemUser());
}

export async function readActor(flags: Actor): Promise<Actor> {
  return nameFlags(() => parseActor(flags));
}

/** The caller of `sudo`, if any. In a container the user may have only a number. */
function systemUser(): string {
  try {
    return process.env['SUDO_USER'] ?? userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Options with another name on the command line. */
const FLAGS: Readonly<Record<string, string>> = {
  journalDirs: '--journal',
  keyFile: '--key',
  sshKeyFile: '--ssh-key',
};

/** Names options in errors as typed: `payoutId` becomes `--payout-id`. */
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
  if (field.startsWith('--')) return field;
  return FLAGS[field] ?? `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

const schema = z.object({ '--limit': z.coerce.number().int('must be a whole number').min(1, 'must be at least 1') });

export function parseLimit(text: string): number {
  return parseInput(schema, { '--limit': text })['--limit'];
}
