#!/usr/bin/env node
import { registerAdoptLedgerCommand } from './commands/adopt-ledger-command.js';
import { registerCancelCommand } from './commands/cancel-command.js';
import { createProcessContext } from './context/cli-context.js';
import { registerDashboardCommand } from './commands/dashboard-command.js';
import { registerDemoCommand } from './commands/demo-command.js';
import { registerDoctorCommand } from './commands/doctor-command.js';
import { registerEnqueueCommand } from './commands/enqueue-command.js';
import { registerEventsCommand } from './commands/events-command.js';
import { registerGatewayCommand } from './commands/gateway-command.js';
import { registerGetCommand } from './commands/get-command.js';
import { registerImportCommand } from './commands/import-command.js';
import { registerListCommand } from './commands/list-command.js';
import { registerPauseCommand } from './commands/pause-command.js';
import { registerResolveCommand } from './commands/resolve-command.js';
import { registerResumeCommand } from './commands/resume-command.js';
import { registerRetryCommand } from './commands/retry-command.js';
import { runProgram, type CommandGroup } from './context/run-program.js';
import { registerSandboxCommand } from './commands/sandbox-command.js';
import { registerStatsCommand } from './commands/stats-command.js';
import { registerWorkerCommand } from './commands/worker-command.js';

/** The commands of `payouts`, as `payouts --help` groups them. */
const GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Payouts:',
    commands: [registerEnqueueCommand, registerImportCommand, registerGetCommand, registerListCommand],
  },
  { heading: 'Operator decisions:', commands: [registerCancelCommand, registerRetryCommand, registerResolveCommand] },
  {
    heading: 'Account:',
    commands: [
      registerStatsCommand,
      registerEventsCommand,
      registerPauseCommand,
      registerResumeCommand,
      registerAdoptLedgerCommand,
    ],
  },
  { heading: 'Gateway:', commands: [registerGatewayCommand] },
  {
    heading: 'Services:',
    commands: [registerWorkerCommand, registerDashboardCommand, registerSandboxCommand],
  },
  {
    heading: 'Tools:',
    commands: [registerDoctorCommand, registerDemoCommand],
  },
];

// Not process.exit(): output that is still in a pipe's buffer would be lost.
process.exitCode = await runProgram(GROUPS, process.argv.slice(2), createProcessContext());
