import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { z } from 'zod';
import { parseInput } from '../fields.js';
import { lineField } from '../ledger/payout.js';

/** Who decided, and why: recorded with every change that a person makes. */
export interface Person {
  readonly by: string;
  readonly reason: string;
}

/** The options as commander read them. */
export interface PersonFlags {
  readonly by: string;
  readonly reason: string;
}

const personSchema = z.object({ '--by': lineField, '--reason': lineField });

/**
 * Adds `--reason` and `--by` to a command.
 * @param defaultReason - without one, `--reason` must be given
 */
export function addPersonOptions(command: Command, defaultReason?: string): Command {
  const withReason =
    defaultReason === undefined
      ? command.requiredOption('--reason <text>', 'why; kept in the history (required)')
      : command.option('--reason <text>', 'why; kept in the history', defaultReason);
  return withReason.option('--by <name>', 'who decided; kept in the history', systemUser());
}

/** @throws InvalidInputError when a text is empty, too long or more than a line */
export function readPerson({ by, reason }: PersonFlags): Person {
  const person = parseInput(personSchema, { '--by': by, '--reason': reason });
  return { by: person['--by'], reason: person['--reason'] };
}

/** In a container the user may have a number only. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
