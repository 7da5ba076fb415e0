import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import { withOperator } from '../context/with-operator.js';

const HELP_AFTER = `
Nothing is sent once this has returned, except the one payout that may be on its way already. Payouts are still
accepted and stay queued; the status of sent ones is still followed. The first reason of a pause stays.

Examples:
  payouts pause --reason "the gateway announced maintenance"
`;

/** Defines `payouts pause`. */
export function definePauseCommand(command: Command, context: CliContext): void {
  addActorOptions(command, 'paused by hand')
    .option('--json', 'print {changed, paused, pausedReason, pausedBy, pausedAt} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Actor & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const result = await withOperator(context, async (operator) => operator.pause(actor));
      const { platformId, changed, pausedReason, pausedBy } = result;
      const why = `${pausedReason ?? ''} (by ${pausedBy ?? ''})`;
      if (flags.json) context.writeJson(result);
      else context.write(`Account ${platformId} ${changed ? 'is' : 'was already'} paused: ${why}\n`);
    });
}
