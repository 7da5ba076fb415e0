import { PassThrough } from 'node:stream';
import picocolors from 'picocolors';
import { COMMAND_GROUPS } from '../../../src/cli/command-groups.js';
import { createLineLogger } from '../../../src/cli/context/line-logger.js';
import { runProgram } from '../../../src/cli/context/run-program.js';
import type { CliResult } from '../../support/cli.js';

/** What a test finds out without starting a process, which takes longer than most commands. */
export async function runInProcess(args: readonly string[], env: Readonly<Record<string, string>>): Promise<CliResult> {
  const { PATH = '', HOME = '', REDIS_URL = '' } = process.env;
  let [stdout, stderr] = ['', ''];
  const write = (text: string): void => void (stdout += text);
  const writeError = (text: string): void => void (stderr += text);
  const code = await runProgram(COMMAND_GROUPS, args, {
    environment: { PATH, HOME, REDIS_URL, ...env },
    colours: picocolors.createColors(false),
    logger: createLineLogger(writeError),
    write,
    writeJson: (value) => {
      write(`${JSON.stringify(value)}\n`);
    },
    writeError,
    terminal: { input: new PassThrough(), output: new PassThrough() },
    stopSignal: () => new AbortController().signal,
  });
  return { code, signal: null, stdout, stderr };
}
