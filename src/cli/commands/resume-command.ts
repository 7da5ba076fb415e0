import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import { withOperator } from '../context/with-operator.js';

const HELP_AFTER = `
Look first at why the account was paused (\`payouts stats\`): when the gateway blocked it, the next send may prolong that.

An account that a send journal objects to is not resumed (exit code 4): \`payouts stats\` shows the command that ends that.

Examples:
  payouts resume --reason "the gateway has lifted the block"
`;

/** Defines `payouts resume`. */
export function defineResumeCommand(command: Command, context: CliContext): void {
  addActorOptions(command, 'resumed by hand')
    .option('--json', 'print {changed, paused, …} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Actor & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const result = await withOperator(context, async (operator) => operator.resume(actor));
      if (flags.json) context.writeJson(result);
      else context.write(`Account ${result.platformId} ${result.changed ? 'sends again' : 'was not paused'}.\n`);
    });
}
