#!/usr/bin/env node
// Comes first: SIGUSR1 would open Node's inspector, and with it the process, its keys and its queue.
process.on('SIGUSR1', () => undefined);

const [{ COMMAND_GROUPS }, { createProcessContext }, { runProgram }, { endDespiteHang }] = await Promise.all([
  import('./command-groups.js'),
  import('./context/cli-context.js'),
  import('./context/run-program.js'),
  import('./context/cli-context.js'),
]);

// process.exit() would lose output still in a pipe's buffer.
process.exitCode = await runProgram(COMMAND_GROUPS, process.argv.slice(2), createProcessContext());
endDespiteHang();

export {};
