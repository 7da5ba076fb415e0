import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';

/** The kernel ends such a process with this one, however this one ends. */
const ENDS_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL', '--'];

/** Of the environment here only PATH and HOME reach it. */
export function startChild(
  command: readonly string[],
  { env = {}, ...options }: SpawnOptions & { readonly env?: Readonly<Record<string, string>> } = {},
): ChildProcess {
  const [program = '', ...args] = [...ENDS_WITH_PARENT, ...command];
  const { PATH, HOME } = process.env;
  const child = spawn(program, args, { ...options, env: { PATH, HOME, ...env } });
  child.on('error', () => undefined);
  return child;
}

export const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

/** Ends it also if it is stopped. */
export async function endChild(child: ChildProcess) {
  child.kill('SIGKILL');
  if (isRunning(child)) await once(child, 'exit');
}

/** Runs a command to its end. @returns what it printed. @throws Error with what it said if it failed */
export async function runChild(command: readonly string[]): Promise<string> {
  const child = startChild(command, { stdio: ['ignore', 'pipe', 'pipe'] });
  let [printed, said] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${String(code)}: ${said.trim()}`);
  return printed;
}
