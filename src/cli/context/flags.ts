import { userInfo } from 'node:os';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { type Environment, readConfig, type VariableName } from '../../base/config.js';
import { ConflictError, InvalidInputError, TransactionMismatchError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { type Actor, batchField, parseActor } from '../../ledger/payout.js';

/**
 * The end of a command's help.
 * @param about - what its options do not say
 */
export function help(about: string, ...examples: readonly string[]): string {
  const lines = examples.map((example) => `  ${example}\n`).join('');
  return `${about === '' ? '' : `\n${about}\n`}\nExamples:\n${lines}`;
}

export function readVariable<Name extends VariableName>(
  name: Name,
  environment: Environment,
): ReturnType<typeof readConfig<Name>>[Name] {
  return readConfig([name], environment)[name];
}

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
export function systemUser(): string {
  try {
    return process.env['SUDO_USER'] ?? userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Options with another name on the command line. */
const FLAGS: Readonly<Record<string, string>> = {
  journalDirs: '--journal',
};

/** Names options in errors as typed: `payoutId` becomes `--payout-id`. */
export async function nameFlags<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TransactionMismatchError) {
      throw new ConflictError(`${error.message}; --force takes the payment unchecked`, error.fields);
    }
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.problems.map(({ field, message }) => ({ field: toFlag(field), message })));
  }
}

function toFlag(field: string): string {
  if (field.startsWith('--')) return field;
  return FLAGS[field] ?? `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws InvalidInputError naming a flag, an argument or a file */
export function refuse(field: string, message: string): never {
  throw new InvalidInputError([{ field, message }]);
}

const limitSchema = z.object({
  '--limit': z.coerce.number().int('must be a whole number').min(1, 'must be at least 1'),
});

export function parseLimit(text: string): number {
  return parseInput(limitSchema, { '--limit': text })['--limit'];
}

export function checkBatch(batch: string | undefined): void {
  parseInput(z.object({ '--batch': batchField.optional() }), { '--batch': batch });
}

/** A date means its first moment, UTC. */
export function parseTime(field: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const time = /^\d{4}-\d\d-\d\d(T.*(Z|[+-]\d\d:\d\d))?$/.test(given) ? Date.parse(given) : NaN;
  if (!Number.isNaN(time)) return time;
  return refuse(field, `must be a time such as 2030-01-31 or 2030-01-31T09:00:00Z (got "${given}")`);
}

interface ChosenBy {
  readonly batch?: string | undefined;
  readonly file?: string | undefined;
  readonly state?: string | undefined;
  readonly message?: string | undefined;
}

/** What a person chose payouts by, for the activity: `batch june`, `file wrong.csv`, `state rejected`. */
export function describeSource({ batch, file, state, message }: ChosenBy): string {
  return [
    ...(batch === undefined ? [] : [`batch ${batch}`]),
    ...(file === undefined ? [] : [`file ${file === '-' ? 'stdin' : basename(file)}`]),
    ...(state === undefined ? [] : [`state ${state}`]),
    ...(message === undefined ? [] : [`message ${message}`]),
  ].join(', ');
}
