import type { Command } from 'commander';
import { systemClock } from '../../clock.js';
import { ConflictError, InvalidInputError, NotFoundError } from '../../errors.js';
import { parseActor, type Actor } from '../../ledger/actor.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { acceptDrops, readReconciliation } from '../../ledger/reconciliation-store.js';
import { addActorOptions } from '../context/actor-options.js';
import type { CliContext } from '../context/cli-context.js';
import { nameFlags } from '../context/name-flags.js';
import { withAccount } from '../context/with-account.js';
import {
  describeReconciliation,
  toReconciliationView,
  type ReconciliationView,
} from '../output/format-reconciliation.js';

interface Flags extends Actor {
  readonly accept?: true;
  readonly json?: true;
}

const HELP_AFTER = `
The worker that sends compares each balance that it reads (BALANCE_EVERY_MS) with the payouts: what was sent, with its fee, and
what may or may not have been taken yet. This shows what it found last. A drop that stays unexplained in two readings is
reported, and stays until --accept. It is the only sign of a secret key that somebody else uses; docs/control.md says what it
cannot see.

--accept says that you have looked at what was reported: the alert ends, and what is found later is one again. It resumes
no account.

Exit codes: 0 nothing is missing, or it was accepted. 1 Redis is unavailable. 2 wrong input. 3 nothing was compared yet.
4 an unexplained drop.

Examples:
  payouts reconcile
  payouts reconcile --json | jq .balances
  payouts reconcile --accept --reason "moved 5000 to the cold wallet by hand"
`;

/** What stands for a reason until one is given. */
const NO_REASON = '';

/** Defines `payouts reconcile`. */
export function defineReconcileCommand(command: Command, context: CliContext): void {
  command.option('--accept', 'you have looked at what was reported: it is no alert any more');
  addActorOptions(command, NO_REASON)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Flags) => {
      const actor = await readAccepting(flags);
      const view = await withAccount(context, async ({ ledger: { connection } }) => {
        const found = await readView(connection);
        if (actor === undefined || found.lastDropAt === null) return found;
        await acceptDrops(connection, Date.parse(found.lastDropAt), actor);
        return readView(connection);
      });
      if (flags.json) context.writeJson(view);
      else context.write(describeReconciliation(view, systemClock.wallNow(), context.colours));
      if (!view.ok) throw new ConflictError('The balance fell without a payout that explains it', ['balance']);
    });
}

/** @returns undefined where nothing is accepted */
async function readAccepting({ accept, by, reason }: Flags): Promise<Actor | undefined> {
  if (accept === true) return nameFlags(async () => Promise.resolve(parseActor({ by, reason })));
  if (reason === NO_REASON) return undefined;
  throw new InvalidInputError([{ field: '--reason', message: 'goes with --accept' }]);
}

async function readView(connection: LedgerConnection): Promise<ReconciliationView> {
  const [stored, facts] = await Promise.all([readReconciliation(connection), readGatewayFacts(connection)]);
  const view = toReconciliationView(connection.platformId, stored, facts.currencies);
  if (view !== undefined) return view;
  throw new NotFoundError(
    'The balance was not compared yet: a worker that sends does it at its first reading (BALANCE_EVERY_MS)',
  );
}
