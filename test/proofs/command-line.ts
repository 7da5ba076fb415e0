/** Writes a line to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** @throws Error with the usage when an option is not a whole number */
export function wholeNumber(text: string, usage: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is not a whole number\n${usage}`);
  return Number(text);
}

/** Ends this process on a signal through its exit listeners, which end every process that it has started. */
export function exitOnSignals(): void {
  process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
}

/** Prints the usage where it was asked for; else runs the command, which exits with 0 when `main` returns true. */
export async function runCommand(main: () => Promise<boolean>, usage: string, isHelp: boolean): Promise<void> {
  if (isHelp) print(usage);
  else process.exitCode = (await main()) ? 0 : 1;
}
