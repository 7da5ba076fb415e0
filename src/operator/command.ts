/** A `payouts` command as an operator gives it. Words in capitals stand for the operator's own. */
export interface Command {
  /** Such as `retry` or `gateway status`. */
  readonly name: string;
  readonly args: readonly string[];
}

/** How the advice to an operator depends on where it is shown. */
export interface AdviceOptions {
  /** Whether workers have a keyring, so that an operator has to sign what sends again. */
  readonly isSigned?: boolean;
}

/** On these, workers with a keyring believe nothing that no operator signed. */
const SIGNED_COMMANDS: readonly string[] = ['retry', 'resume', 'adopt-ledger'];

/**
 * The command as text, for this account wherever the environment of its reader leads, and with the key that it needs if
 * payouts have to be signed.
 */
export function formatCommand(
  { name, args }: Command,
  platformId: number,
  { isSigned = false }: AdviceOptions = {},
): string {
  // A payoutId behind `--` may look like an option.
  const end = args.at(-2) === '--' ? args.length - 2 : args.length;
  const needsKey =
    SIGNED_COMMANDS.includes(name) || (name === 'resolve' && args.lastIndexOf('--not-sent', end - 1) > -1);
  const key = isSigned && needsKey ? ['--key', 'FILE'] : [];
  const words = args.toSpliced(args.lastIndexOf('--reason', end - 1), 0, ...key);
  return ['payouts', ...name.split(' '), '--account', String(platformId), ...words].map(shellQuote).join(' ');
}

/** A word as any POSIX shell reads it back. Words that need no quotes stay as they are, for readability. */
export function shellQuote(word: string): string {
  // `=` at the beginning of a word is a path look-up in zsh.
  if (/^[A-Za-z0-9_./:,+@%-][A-Za-z0-9_./:,+@%=-]*$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
