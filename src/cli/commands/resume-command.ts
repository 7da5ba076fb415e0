import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import {
  addSigningOptions,
  describeSigner,
  describeSigning,
  openSigner,
  SIGNING_HELP,
  type SigningFlags,
} from '../context/signing-options.js';
import { withOperator } from '../context/with-operator.js';

const HELP_AFTER = `
Look first at why the account was paused (\`payouts stats\`): when the gateway blocked it, the next send may prolong that.

An account that a send journal objects to is not resumed (exit code 4): \`payouts stats\` shows the command that ends that.
${SIGNING_HELP}
Examples:
  payouts resume --reason "the gateway has lifted the block"
  payouts resume --ssh-key ~/.ssh/id_ed25519_sk.pub --reason "the gateway has lifted the block"
`;

/** Defines `payouts resume`. */
export function defineResumeCommand(command: Command, context: CliContext): void {
  addActorOptions(addSigningOptions(command), 'resumed by hand')
    .option('--json', 'print {changed, paused, …} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Actor & SigningFlags & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const signer = await openSigner(context, flags);
      const result = await withOperator(context, async (operator) => operator.resume(actor), signer);
      if (flags.json) context.writeJson(result);
      else {
        const { platformId, changed } = result;
        context.write(`Account ${platformId} ${describeResume(changed, signer)}.\n`);
      }
    });
}

function describeResume(changed: boolean, signer: ActSigner | undefined): string {
  if (changed) return `sends again${describeSigning(signer)}`;
  if (signer === undefined) return 'was not paused';
  return `was not paused; what ${describeSigner(signer)} signed is kept for workers that keep a pause of their own`;
}
