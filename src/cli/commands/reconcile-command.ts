import type { Command } from 'commander';
import { systemClock } from '../../base/clock.js';
import { ConflictError, NotFoundError } from '../../base/errors.js';
import { formatAmount, formatDuration, formatTimeUtc } from '../../base/format.js';
import { type Actor, parseActor } from '../../ledger/payout.js';
import { nameBalance } from '../../ledger/reads/balance-cover.js';
import { type Currency, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import {
  acceptDrops,
  addSums,
  pendingDrop,
  readReconciliation,
  type ReconciledBalance,
  type ReportedDrop,
  type SendSum,
  type StoredReconciliation,
} from '../../ledger/reads/reconciliation.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { addActorOptions, help, nameFlags, refuse } from '../context/flags.js';
import { formatTable } from '../output/format-table.js';

interface Flags extends Actor {
  readonly accept?: true;
  readonly json?: true;
}

const NO_REASON = '';

export function defineReconcileCommand(command: Command, context: CliContext): void {
  command.option('--accept', 'you have looked at what was reported: it is no alert any more');
  addActorOptions(command, NO_REASON)
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      help(
        `The worker that sends compares each balance that it reads (BALANCE_EVERY_MS) with the payouts. This shows what it found last. A drop
that two readings cannot explain stays reported until --accept; docs/control.md says what it can and cannot see.

Exit codes: 0 nothing is missing, or it was accepted. 3 nothing was compared yet. 4 an unexplained drop.`,
        'payouts reconcile',
        'payouts reconcile --json | jq .balances',
        'payouts reconcile --accept --reason "moved 5000 to the cold wallet by hand"',
      ),
    )
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

async function readAccepting({ accept, by, reason }: Flags): Promise<Actor | undefined> {
  if (accept === true) return nameFlags(async () => Promise.resolve(parseActor({ by, reason })));
  if (reason === NO_REASON) return undefined;
  refuse('--reason', 'goes with --accept');
}

async function readView(connection: LedgerConnection): Promise<ReconciliationView> {
  const [stored, facts] = await Promise.all([readReconciliation(connection), readGatewayFacts(connection)]);
  const view = toReconciliationView(connection.platformId, stored, facts.currencies);
  if (view !== undefined) return view;
  throw new NotFoundError(
    'The balance was not compared yet: a worker that sends does it at its first reading (BALANCE_EVERY_MS)',
  );
}

type ReconciliationView = NonNullable<ReturnType<typeof toReconciliationView>>;

/** Times are ISO 8601, UTC; amounts are decimal strings. */
function toReconciliationView(
  platformId: number,
  { reconciliation, acceptedDrops }: StoredReconciliation,
  currencies: readonly Currency[],
) {
  if (reconciliation === undefined) return undefined;
  const drops = reconciliation.balances.map((balance) => pendingDrop(balance, acceptedDrops?.upTo));
  const dropTimes = drops.flatMap((drop) => (drop === undefined ? [] : [drop.at]));
  return {
    platformId,
    /** False after a reported drop that no operator has accepted. */
    ok: dropTimes.length === 0,
    comparedAt: toTime(reconciliation.comparedAt),
    followedSince: toTime(reconciliation.followedSince),
    lastDropAt: dropTimes.length === 0 ? null : toTime(Math.max(...dropTimes)),
    balances: reconciliation.balances.map((balance, index) => viewBalance(balance, drops[index], currencies)),
  };
}

function viewBalance(balance: ReconciledBalance, drop: ReportedDrop | undefined, currencies: readonly Currency[]) {
  const { amount, baseline, settled, recent, open, unexplained, incomparable, isSuspected } = balance;
  return {
    currency: nameBalance(balance, currencies),
    balance: amount,
    baseline: baseline === undefined ? null : { ...baseline, at: toTime(baseline.at) },
    /** Sends ended since the baseline, with the most they can have taken. */
    sent: addSums([settled, recent]),
    open,
    /** Null while unknown; `incomparable` says why. */
    unexplained: unexplained ?? null,
    incomparable: incomparable ?? null,
    /** Too low in the last reading: the next one decides. */
    isSuspected,
    drop: drop === undefined ? null : { amount: drop.amount, since: toTime(drop.since), at: toTime(drop.at) },
  };
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}

function describeReconciliation(
  { platformId, comparedAt, balances }: ReconciliationView,
  wallNow: number,
  colours: CliContext['colours'],
): string {
  const age = formatDuration(Math.max(0, wallNow - Date.parse(comparedAt)));
  const rows = balances.flatMap((balance) => describeBalance(balance, colours));
  return `Account ${platformId}, compared ${age} ago\n${formatTable(rows)}`;
}

function describeBalance(view: ReconciliationView['balances'][number], colours: CliContext['colours']): string[][] {
  const { currency, balance, baseline, sent, open, drop } = view;
  return [
    ['', currency, 'balance', formatAmount(balance, currency)],
    [
      '',
      '',
      'baseline',
      baseline === null ? 'none yet' : `${formatAmount(baseline.amount, currency)} (${formatTimeUtc(baseline.at)})`,
    ],
    ['', '', 'sent since', describeSum(sent, currency)],
    ['', '', 'not ended', describeSum(open, currency)],
    ['', '', 'unexplained', describeUnexplained(view)],
    ...(drop === null
      ? []
      : [
          [
            '',
            '',
            'REPORTED',
            colours.red(`${formatAmount(drop.amount, currency)} missing, since ${formatTimeUtc(drop.since)}`),
          ],
        ]),
  ];
}

function describeSum({ count, high }: SendSum, currency: string): string {
  return count === 0
    ? 'nothing'
    : `${high === undefined ? 'more than can be said' : `up to ${formatAmount(high, currency)}`} (${count})`;
}

function describeUnexplained({
  currency,
  unexplained,
  incomparable,
  isSuspected,
}: ReconciliationView['balances'][number]): string {
  if (unexplained === null) return `cannot be compared: ${incomparable ?? ''}`;
  return `${formatAmount(unexplained, currency)}${isSuspected ? ', the next reading decides' : ''}`;
}
