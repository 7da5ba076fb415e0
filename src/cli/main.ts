#!/usr/bin/env node
// Comes first: SIGUSR1 would open Node's inspector, and with it the process, its keys and its queue.
process.on('SIGUSR1', () => undefined);

async function main(): Promise<void> {
  process.once('beforeExit', endUnfinished);
  // Before anything that an older Node may fail to load.
  const { findOldNode } = await import('../base/version.js');
  const oldNode = findOldNode();
  if (oldNode !== undefined && process.env['NODE_NO_WARNINGS'] !== '1') process.stderr.write(`payouts: ${oldNode}\n`);
  const [{ COMMAND_GROUPS }, { createProcessContext, endDespiteHang }, { runProgram }] = await Promise.all([
    import('./command-groups.js'),
    import('./context/cli-context.js'),
    import('./context/run-program.js'),
  ]);
  // process.exit() would lose output still in a pipe's buffer.
  process.exitCode = await runProgram(COMMAND_GROUPS, process.argv.slice(2), createProcessContext());
  process.off('beforeExit', endUnfinished);
  endDespiteHang();
}

/** With the code that Node gives an ES module of which an `await` never ends. */
function endUnfinished(): void {
  process.stderr.write('payouts: ended before the command was finished\n');
  process.exitCode = 13;
}

void main();

export {};
