import { Command } from 'commander';
import { registerSandboxCommand } from '../../../src/cli/commands/sandbox-command.js';
import { stopSignal } from '../../../src/cli/context/stop-signal.js';

/** `payouts sandbox` as a process of its own, without the rest of the program. */
const program = new Command();
registerSandboxCommand(program, {
  loadSandboxAccount: () => ({ platformId: 7, secretKey: 'secret-of-the-environment' }),
  stopSignal,
  writeError: (text) => process.stderr.write(text),
});
try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 2;
}
