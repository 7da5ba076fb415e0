import { Argument, type Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import { help } from '../context/flags.js';

export function defineCompletionCommand(command: Command, context: CliContext): void {
  command
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      help(
        'The shell has to read the script at its start.',
        `echo 'eval "$(payouts completion bash)"' >> ~/.bashrc`,
        "echo 'source <(payouts completion zsh)' >> ~/.zshrc",
        'payouts completion fish > ~/.config/fish/completions/payouts.fish',
      ),
    )
    .action((shell: 'bash' | 'zsh' | 'fish') => {
      const all = command.parent === null ? [] : readWords(command.parent, '');
      if (shell === 'zsh') context.write('autoload -U +X bashcompinit && bashcompinit\n');
      context.write(shell === 'fish' ? formatFish(all) : formatBash(all));
    });
}

type Words = readonly { readonly after: string; readonly words: readonly string[] }[];

function readWords(command: Command, after: string): Words {
  const options = command.options.filter(({ hidden }) => !hidden);
  const words = [
    ...command.commands.map((under) => under.name()),
    ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    ...options.map(({ long }) => long ?? ''),
    '--help',
  ];
  const values = options
    .filter(({ required, optional }) => required || optional)
    .map(({ long, argChoices = [] }) => ({ after: `${after} ${long ?? ''}`, words: argChoices }));
  const under = command.commands.flatMap((one) => readWords(one, `${after} ${one.name()}`));
  return [{ after, words }, ...values, ...under];
}

/** zsh runs it too, so no variable may have a zsh name such as `path`. */
function formatBash(all: Words): string {
  const names = all.map(({ after }) => `'${after}'`);
  const options = names.filter((name) => name.includes(' -')).join('|');
  const commands = names.filter((name) => !name.includes(' -')).join('|');
  return `_payouts() {
  local typed="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" at='' found='' i
  for (( i = 1; i < COMP_CWORD; i++ )); do
    case "$at \${COMP_WORDS[i]}" in ${commands}) at="$at \${COMP_WORDS[i]}" ;; esac
  done
  case "$at $before" in ${options}) at="$at $before" ;; esac
  case "$at" in
${all.map(({ after, words }) => `    '${after}') found='${words.join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$found" -- "$typed"))
}
complete -o default -F _payouts payouts
`;
}

function formatFish(all: Words): string {
  return all
    .map(({ after, words }) => {
      const [path = '', option] = after.split(' --');
      const seen = path
        .split(' ')
        .slice(1)
        .map((word) => `__fish_seen_subcommand_from ${word}`);
      const what = option === undefined ? '-f' : `-l ${option} ${words.length === 0 ? '-r' : '-x'}`;
      const values = words.length === 0 ? '' : ` -a '${words.join(' ')}'`;
      return `complete -c payouts -n '${seen.join('; and ') || '__fish_use_subcommand'}' ${what}${values}\n`;
    })
    .join('');
}
