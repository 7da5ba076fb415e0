import { Argument, type Command } from 'commander';
import { formatCompletion, SHELLS, type Shell } from '../completion/format-completion.js';
import { readWords } from '../completion/read-words.js';
import type { CliContext } from '../context/cli-context.js';

const HELP_AFTER = `
Prints a script that completes commands, options and their values. The shell has to read it at its start.

Examples:
  echo 'eval "$(payouts completion bash)"' >> ~/.bashrc
  echo 'source <(payouts completion zsh)' >> ~/.zshrc
  payouts completion fish > ~/.config/fish/completions/payouts.fish
`;

/** Defines `payouts completion`. */
export function defineCompletionCommand(command: Command, context: CliContext): void {
  command
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', HELP_AFTER)
    .action((shell: Shell) => {
      if (command.parent !== null) context.write(formatCompletion(shell, readWords(command.parent)));
    });
}
