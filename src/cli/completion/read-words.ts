import type { Command } from 'commander';

/** An option as a shell completes it. */
export interface OptionWord {
  /** `--state`. */
  readonly name: string;
  readonly description: string;
  readonly takesValue: boolean;
  /** The values that it takes, where they are known. */
  readonly choices: readonly string[];
}

/** A command as a shell completes it. */
export interface CommandWord {
  /** `list`, or `gateway balance`. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly options: readonly OptionWord[];
  /** The words that may come next: commands under it, or the values of its argument. */
  readonly words: readonly string[];
}

/** Every command of the program, those with commands under them before these. */
export function readWords(program: Command): CommandWord[] {
  return program.commands.flatMap((command) => readCommand(command, []));
}

function readCommand(command: Command, before: readonly string[]): CommandWord[] {
  const path = [...before, command.name()];
  const help = { name: '--help', description: 'print help', takesValue: false, choices: [] };
  const word: CommandWord = {
    path: path.join(' '),
    name: command.name(),
    description: command.description(),
    options: [
      ...command.options
        .filter(({ hidden }) => !hidden)
        .map((option) => ({
          name: option.long ?? option.short ?? '',
          description: option.description,
          takesValue: option.required || option.optional,
          choices: option.argChoices ?? [],
        })),
      help,
    ],
    words: [
      ...command.commands.map((under) => under.name()),
      ...command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    ],
  };
  return [word, ...command.commands.flatMap((under) => readCommand(under, path))];
}
