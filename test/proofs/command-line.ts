export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function wholeNumber(text: string, usage: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is not a whole number\n${usage}`);
  return Number(text);
}

export function exitOnSignals(): void {
  process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
}

export async function runCommand(main: () => Promise<boolean>, usage: string, isHelp: boolean): Promise<void> {
  if (isHelp) print(usage);
  else process.exitCode = (await main()) ? 0 : 1;
}
