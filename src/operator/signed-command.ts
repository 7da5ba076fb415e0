/** How the advice to an operator depends on where it is shown. */
export interface AdviceOptions {
  /** Whether workers have a keyring, so that an operator has to sign what sends again. */
  readonly isSigned?: boolean;
}

/** On these, workers with a keyring believe nothing that no operator signed. */
const SIGNED_COMMANDS = [
  /^payouts retry /,
  /^payouts resume /,
  /^payouts adopt-ledger /,
  /^payouts resolve .*--not-sent /,
] as const;

const REASON = ' --reason ';

/** The command as an operator gives it: with the key that it needs where payouts have to be signed. */
export function withKey(command: string, { isSigned = false }: AdviceOptions): string {
  if (!isSigned || !SIGNED_COMMANDS.some((signed) => signed.test(command))) return command;
  const at = command.lastIndexOf(REASON);
  return `${command.slice(0, at)} --key FILE${command.slice(at)}`;
}
