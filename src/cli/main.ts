#!/usr/bin/env node
// First, before anything is loaded: at SIGUSR1 Node would open its inspector, and with it the process, its keys and its queue.
process.on('SIGUSR1', () => undefined);

const [{ COMMAND_GROUPS }, { createProcessContext }, { runProgram }, { endDespiteHang }] = await Promise.all([
  import('./command-groups.js'),
  import('./context/cli-context.js'),
  import('./context/run-program.js'),
  import('./context/cli-context.js'),
]);

// Not process.exit(): output that is still in a pipe's buffer would be lost.
process.exitCode = await runProgram(COMMAND_GROUPS, process.argv.slice(2), createProcessContext());
endDespiteHang();

export {};
