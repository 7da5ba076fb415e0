import { Command } from 'commander';
import { defineSandboxCommand } from '../../../src/cli/commands/sandbox-command.js';
import { stopSignal } from '../../../src/cli/context/stop-signal.js';

/** `payouts sandbox` as a process of its own, without the rest of the program. */
const program = new Command();
defineSandboxCommand(program.command('sandbox'), {
  environment: { GATEWAY_PLATFORM_ID: '7', GATEWAY_SECRET_KEY: 'secret-of-the-environment' },
  stopSignal,
  writeError: (text) => void process.stderr.write(text),
});
try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 2;
}
