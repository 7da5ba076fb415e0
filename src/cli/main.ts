#!/usr/bin/env node
import { registerAdoptLedgerCommand } from './adopt-ledger-command.js';
import { registerCancelCommand } from './cancel-command.js';
import { createProcessContext } from './cli-context.js';
import { registerDashboardCommand } from './dashboard-command.js';
import { registerDemoCommand } from './demo-command.js';
import { registerDoctorCommand } from './doctor-command.js';
import { registerEnqueueCommand } from './enqueue-command.js';
import { registerEventsCommand } from './events-command.js';
import { registerGatewayCommand } from './gateway-command.js';
import { registerGetCommand } from './get-command.js';
import { registerImportCommand } from './import-command.js';
import { registerListCommand } from './list-command.js';
import { registerPauseCommand } from './pause-command.js';
import { registerResolveCommand } from './resolve-command.js';
import { registerResumeCommand } from './resume-command.js';
import { registerRetryCommand } from './retry-command.js';
import { runProgram, type CommandGroup } from './run-program.js';
import { registerSandboxCommand } from './sandbox-command.js';
import { registerStatsCommand } from './stats-command.js';
import { registerWorkerCommand } from './worker-command.js';

/** The `payouts` command. */
const GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Payouts:',
    commands: [registerEnqueueCommand, registerImportCommand, registerGetCommand, registerListCommand],
  },
  { heading: 'Decide:', commands: [registerCancelCommand, registerRetryCommand, registerResolveCommand] },
  {
    heading: 'The account:',
    commands: [
      registerStatsCommand,
      registerEventsCommand,
      registerPauseCommand,
      registerResumeCommand,
      registerAdoptLedgerCommand,
    ],
  },
  { heading: 'The gateway:', commands: [registerGatewayCommand] },
  {
    heading: 'Run:',
    commands: [
      registerWorkerCommand,
      registerDashboardCommand,
      registerSandboxCommand,
      registerDemoCommand,
      registerDoctorCommand,
    ],
  },
];

// Not process.exit(): what was written to a pipe must arrive.
process.exitCode = await runProgram(GROUPS, process.argv.slice(2), createProcessContext());
