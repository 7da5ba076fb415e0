export interface AdviceOptions {
  /** Whether workers have a keyring, so that an operator must sign what sends again. */
  readonly isSigned?: boolean;
}

/** For these, workers with a keyring require an operator's signature. */
const SIGNED_COMMANDS = [
  /^payouts retry /,
  /^payouts resume /,
  /^payouts adopt-ledger /,
  /^payouts resolve .*--not-sent /,
] as const;

const REASON = ' --reason ';

export function withKey(command: string, { isSigned = false }: AdviceOptions): string {
  if (!isSigned || !SIGNED_COMMANDS.some((signed) => signed.test(command))) return command;
  const at = command.lastIndexOf(REASON);
  return `${command.slice(0, at)} --key FILE${command.slice(at)}`;
}
