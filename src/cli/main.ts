#!/usr/bin/env node
import { COMMAND_GROUPS } from './command-groups.js';
import { createProcessContext } from './context/cli-context.js';
import { runProgram } from './context/run-program.js';
import { endDespiteHang } from './context/stop-signal.js';

// Not process.exit(): output that is still in a pipe's buffer would be lost.
process.exitCode = await runProgram(COMMAND_GROUPS, process.argv.slice(2), createProcessContext());
endDespiteHang();
