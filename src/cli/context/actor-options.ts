import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { parseActor, type Actor } from '../../ledger/actor.js';
import { nameFlags } from './name-flags.js';

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
