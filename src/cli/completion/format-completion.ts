import type { CommandWord, OptionWord } from './read-words.js';

/** The shells for which there is a completion. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A script that a shell reads at its start. It holds everything, so that no key press starts a program. */
export function formatCompletion(shell: Shell, commands: readonly CommandWord[]): string {
  return FORMAT[shell](commands);
}

const FORMAT: Readonly<Record<Shell, (commands: readonly CommandWord[]) => string>> = {
  bash: formatBash,
  zsh: formatZsh,
  fish: formatFish,
};

const isUnder = ({ path }: CommandWord): boolean => path.includes(' ');

function formatBash(commands: readonly CommandWord[]): string {
  const cases = commands.map(({ path, options, words }) => {
    const values = options
      .filter(({ choices }) => choices.length > 0)
      .map(({ name, choices }) => `        ${name}) words='${choices.join(' ')}' ;;`);
    const other = options.filter(({ takesValue, choices }) => takesValue && choices.length === 0);
    // Nothing of ours: bash then completes the names of files.
    if (other.length > 0) values.push(`        ${other.map(({ name }) => name).join('|')}) words='' ;;`);
    const all = [...words, ...options.map(({ name }) => name)].join(' ');
    return `    '${path}')
      case "$before" in
${[...values, `        *) words='${all}' ;;`].join('\n')}
      esac ;;`;
  });
  return `# Completion of payouts for bash. Put it into ~/.bashrc: eval "$(payouts completion bash)"
_payouts() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words place="\${COMP_WORDS[1]}"
  [ "$COMP_CWORD" -le 1 ] && place=''
  case "$place:\${COMP_WORDS[2]}" in
${commands
  .filter(isUnder)
  .map(({ path }) => `    ${path.replace(' ', ':')}) [ "$COMP_CWORD" -gt 2 ] && place='${path}' ;;`)
  .join('\n')}
  esac
  case "$place" in
    '') words='${commands
      .filter((command) => !isUnder(command))
      .map(({ name }) => name)
      .join(' ')} --help --version' ;;
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _payouts payouts
`;
}

function formatZsh(commands: readonly CommandWord[]): string {
  const top = commands.filter((command) => !isUnder(command));
  const cases = commands.map(({ path, options, words }) => {
    const described = options.map((option) => `      ${quote(toZshOption(option))} \\`);
    const rest = words.length > 0 ? `'*:word:(${words.join(' ')})'` : `'*:file:_files'`;
    return `    '${path}') _arguments \\\n${described.join('\n')}\n      ${rest} ;;`;
  });
  return `#compdef payouts
# Completion of payouts for zsh. Put it into ~/.zshrc, after compinit: source <(payouts completion zsh)
_payouts() {
  local -a commands
  commands=(
${top.map(({ name, description }) => `    ${quote(`${name}:${description}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local place="$words[2]"
  case "$words[2] $words[3]" in
${commands
  .filter(isUnder)
  .map(({ path }) => `    '${path}') (( CURRENT > 3 )) && place='${path}' && shift words && (( CURRENT-- )) ;;`)
  .join('\n')}
  esac
  shift words
  (( CURRENT-- ))
  case "$place" in
${cases.join('\n')}
  esac
}
compdef _payouts payouts
`;
}

function toZshOption({ name, description, takesValue, choices }: OptionWord): string {
  const text = description.replaceAll(/[[\]:]/g, ' ');
  const value = choices.length > 0 ? `:value:(${choices.join(' ')})` : takesValue ? ':value:_files' : '';
  return `${name}[${text}]${value}`;
}

function formatFish(commands: readonly CommandWord[]): string {
  const lines = commands.flatMap(({ path, name, description, options, words }) => {
    const [top = '', under] = path.split(' ');
    const seen =
      under === undefined
        ? `__fish_seen_subcommand_from ${top}`
        : `__fish_seen_subcommand_from ${top}; and __fish_seen_subcommand_from ${under}`;
    const self =
      under === undefined
        ? [`complete -c payouts -n __fish_use_subcommand -f -a ${name} -d ${quote(description)}`]
        : [];
    const values =
      under === undefined && words.length > 0
        ? [`complete -c payouts -n ${quote(seen)} -f -a ${quote(words.join(' '))}`]
        : [];
    return [
      ...self,
      ...values,
      ...options.map((option) => `complete -c payouts -n ${quote(seen)} ${toFishOption(option)}`),
    ];
  });
  return `# Completion of payouts for fish: payouts completion fish > ~/.config/fish/completions/payouts.fish
${lines.join('\n')}
`;
}

function toFishOption({ name, description, takesValue, choices }: OptionWord): string {
  const value = choices.length > 0 ? ` -x -a ${quote(choices.join(' '))}` : takesValue ? ' -r' : '';
  return `-l ${name.replace(/^-+/, '')}${value} -d ${quote(description)}`;
}

/** For all three shells: nothing is special between single quotes but these themselves. */
function quote(text: string): string {
  return `'${text.replaceAll("'", '’')}'`;
}
