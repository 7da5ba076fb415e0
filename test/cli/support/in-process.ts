import { PassThrough } from 'node:stream';
import { COMMAND_GROUPS } from '../../../src/cli/command-groups.js';
import { createOutput } from '../../../src/cli/context/cli-context.js';
import type { Terminal } from '../../../src/cli/context/confirm.js';
import { runProgram } from '../../../src/cli/context/run-program.js';
import type { CliResult } from '../../support/cli.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';

/** What a test finds out without starting a process, which takes longer than most commands. */
export async function runInProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  groups = COMMAND_GROUPS,
  terminal: Terminal = { input: new PassThrough(), output: new PassThrough() },
): Promise<CliResult> {
  const { PATH = '', HOME = '', REDIS_URL = '' } = process.env;
  let [stdout, stderr] = ['', ''];
  const code = await runProgram(groups, args, {
    environment: { PATH, HOME, REDIS_URL, PAYOUT_AUDIENCE: TEST_AUDIENCE, ...env },
    ...createOutput({
      writeOut: (text) => void (stdout += text),
      writeErr: (text) => void (stderr += text),
      isTerminal: terminal.output.isTTY ?? false,
      isColoured: false,
    }),
    terminal,
    stopSignal: () => new AbortController().signal,
  });
  return { code, signal: null, stdout, stderr };
}
