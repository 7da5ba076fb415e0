import type { Command } from 'commander';
import { z } from 'zod';
import { parseInput, txhashField } from '../fields.js';
import type { CliContext } from './cli-context.js';
import { addPersonOptions, readPerson, type PersonFlags } from './person.js';
import { resolvePayout, type Decision } from './resolve-payout.js';

interface Flags extends PersonFlags {
  readonly sent?: boolean;
  readonly notSent?: boolean;
  readonly writeOff?: boolean;
  readonly txhash?: string;
  readonly force?: boolean;
  readonly json?: true;
}

const HELP_AFTER = `
A payout is unknown when it was sent, or maybe sent, and no trustworthy answer came. Ask the gateway's operator, or look
at the recipient's wallet, before you decide: --not-sent pays it again, and nobody can take that back.

--sent asks the gateway about the txhash first and refuses when currency, address or amount are not the payout's.

Examples:
  payouts resolve invoice-77 --sent --txhash 3f1c0a… --reason "support ticket 812"
  payouts resolve invoice-77 --not-sent --reason "the gateway never received it, ticket 812"
  payouts resolve invoice-77 --write-off --reason "paid by bank transfer"
`;

/** Adds `payouts resolve`. */
export function registerResolveCommand(program: Command, context: CliContext): void {
  const command = program
    .command('resolve')
    .description('decide what became of a payout that is unknown')
    .argument('<payoutId>', 'the payout')
    .option('--sent', 'it was sent: follow the transaction --txhash')
    .option('--txhash <txhash>', 'with --sent: the transaction')
    .option('--force', 'with --sent: take the txhash without asking the gateway')
    .option('--not-sent', 'it was not sent: queue it again, it will be paid')
    .option('--write-off', 'it is settled otherwise: cancel it, it will not be sent again');
  addPersonOptions(command)
    .option('--json', 'print the payout as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string, flags: Flags) => {
      const decision = readDecision(flags, command);
      const payout = await resolvePayout(context, payoutId, decision, readPerson(flags));
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is ${payout.state}: ${OUTCOME[decision.kind]}.\n`);
    });
}

const OUTCOME: Readonly<Record<Decision['kind'], string>> = {
  sent: 'its transaction is followed until it is completed or failed',
  not_sent: 'it is sent again as soon as it is its turn',
  write_off: 'it is not sent again',
};

function readDecision({ sent, notSent, writeOff, txhash, force = false }: Flags, command: Command): Decision {
  if ([sent, notSent, writeOff].filter(Boolean).length !== 1) {
    command.error('error: give one of --sent, --not-sent and --write-off');
  }
  if (sent === undefined) {
    if (txhash !== undefined || force) command.error('error: --txhash and --force belong to --sent');
    return { kind: notSent === undefined ? 'write_off' : 'not_sent' };
  }
  if (txhash === undefined) command.error('error: --sent needs --txhash, the transaction of the payment');
  const parsed = parseInput(z.object({ '--txhash': txhashField }), { '--txhash': txhash });
  return { kind: 'sent', txhash: parsed['--txhash'], force };
}
