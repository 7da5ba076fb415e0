import type { Command } from 'commander';
import { systemClock } from '../../clock.js';
import { readAccountStats, type AccountStats } from '../../ledger/account-stats.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import { PAYOUT_STATES, type PayoutState, STATE_MEANING, WATCHED_STATES } from '../../ledger/states.js';
import { readStatistics } from '../../ledger/statistics.js';
import { findRefused, readWorkers, type KnownWorker } from '../../ledger/workers.js';
import { watchHeartbeat, type SenderLife } from '../../ledger/watch-heartbeat.js';
import { adviseAccount } from '../../operator/account-advice.js';
import type { AdviceOptions } from '../../operator/signed-command.js';
import { colourState } from '../output/colour-state.js';
import type { CliContext } from '../context/cli-context.js';
import { describePace, formatSums, toJsonFields, type MoneyFacts } from '../output/format-money-facts.js';
import { hasKeyring } from '../context/keyring.js';
import { formatTable } from '../output/format-table.js';
import { formatDuration, formatSeconds, formatTime } from '../../format.js';
import { withAccount } from '../context/with-account.js';
import { withProducer } from '../context/with-producer.js';

type Colours = CliContext['colours'];
type Counts = Readonly<Record<PayoutState, number>>;

const HELP_AFTER = `
Examples:
  payouts stats
  payouts stats --json | jq .unknown
  payouts stats --batch 2030-01-salaries
`;

/** A live sender is seen within a second. */
const WATCH_MS = 2_500;

/** Defines `payouts stats`. */
export function defineStatsCommand(command: Command, context: CliContext): void {
  command
    .option('--batch <name>', 'count the payouts of this batch only')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP_AFTER)
    .action(async ({ batch, json }: { batch?: string; json?: true }) => {
      if (batch === undefined) await showAccount(context, json);
      else await showBatch(context, batch, json);
    });
}

async function showAccount(context: CliContext, json: true | undefined): Promise<void> {
  await withAccount(context, async ({ ledger: { connection } }) => {
    const [stats, statistics, facts] = await Promise.all([
      readAccountStats(connection),
      readStatistics(connection),
      readGatewayFacts(connection),
    ]);
    const money: MoneyFacts = { stats, statistics, facts, wallNow: systemClock.wallNow() };
    if (json) context.writeJson({ ...stats, ...toJsonFields(money) });
    else {
      const life = await watchHeartbeat(connection, systemClock, WATCH_MS);
      const isSending = life.kind === 'alive' || life.kind === 'changing';
      const refused = isSending ? undefined : findRefused(await readWorkers(connection), systemClock.wallNow());
      const { colours } = context;
      context.write(formatAccount(money, life, { colours, isSigned: hasKeyring(context.environment), refused }));
    }
  });
}

async function showBatch(context: CliContext, batch: string, json: true | undefined): Promise<void> {
  await withProducer(context, async (producer) => {
    const stats = await producer.batchStats(batch);
    if (json) context.writeJson(stats);
    else context.write(`Batch ${batch}: ${stats.total} payouts\n\n${formatCounts(stats, context.colours)}`);
  });
}

interface StatsOptions extends AdviceOptions {
  readonly colours: Colours;
  /** A worker that refuses to send while no other does. */
  readonly refused: KnownWorker | undefined;
}

function formatAccount(money: MoneyFacts, life: SenderLife, options: StatsOptions): string {
  const { stats } = money;
  const { colours } = options;
  const { oldestAgeMs } = stats;
  const facts = [
    ['', 'sending', describeSending(stats, options)],
    ['', 'sender', describeSender(life, colours)],
    ['', 'sends begun', String(stats.sends)],
    ...describePace(money, life),
    ...(stats.latePayments === 0 ? [] : [['', 'paid too late', describeLate(stats, colours)]]),
  ];
  const ages = new Map<PayoutState, string>(
    WATCHED_STATES.map((state) => {
      const ageMs = oldestAgeMs[state];
      return [state, ageMs === null ? '' : `oldest for ${formatDuration(ageMs)}`];
    }),
  );
  return `Account ${stats.platformId}\n${formatTable(facts)}\n${formatCounts(stats, colours, ages)}${formatSums(money)}`;
}

function describeSender(life: SenderLife, colours: Colours): string {
  if (life.kind === 'none') return 'nobody: no worker holds the lease';
  if (life.kind === 'changing') return 'changing right now';
  const who = `${life.owner} (epoch ${life.epoch})`;
  if (life.kind === 'alive') return `${who}, alive${describeHoldOff(life)}`;
  const silent = colours.yellow(`NO HEARTBEAT for ${formatSeconds(life.waitedMs)}`);
  return `${who}: ${silent}. It has ended or hangs: start \`payouts worker\`, or wait until a standby takes over`;
}

/** After a takeover, or a send without a response. */
function describeHoldOff({ holdOffMs }: { readonly holdOffMs: number }): string {
  return holdOffMs === 0 ? '' : `; sends nothing for another ${formatSeconds(holdOffMs)}`;
}

function describeSending(stats: AccountStats, { colours, refused, ...options }: StatsOptions): string {
  const [advice] = adviseAccount(stats, options);
  if (advice === undefined) {
    return refused === undefined
      ? 'not paused'
      : `${colours.yellow('STOPPED')}: the worker ${refused.name} refuses to send. ${refused.reason ?? ''}`;
  }
  const { pausedBy, pausedAt } = stats;
  const since = pausedAt === null ? '' : `, ${formatTime(pausedAt)} UTC`;
  const by = advice.kind === 'pause' ? ` (by ${pausedBy ?? ''}${since})` : '';
  const problem = `${advice.problem}${by}`.replace(/\.?$/, '.');
  return `${colours.yellow('STOPPED')}: ${problem} ${advice.first} \`${advice.command}\``;
}

function describeLate({ latePayments }: AccountStats, colours: Colours): string {
  return colours.yellow(`${latePayments} payouts may have been paid twice: see lateTxhash in \`payouts get ID\``);
}

function formatCounts(counts: Counts, colours: Colours, ages = new Map<PayoutState, string>()): string {
  const rows = PAYOUT_STATES.map((state) => {
    const note = ages.get(state) ?? '';
    const text = counts[state] === 0 ? colours.dim(state) : colourState(state, colours);
    return ['', text, String(counts[state]), note, colours.dim(STATE_MEANING[state])];
  });
  const withAges = rows.some((row) => row[3] !== '');
  return formatTable(withAges ? rows : rows.map((row) => row.filter((_, column) => column !== 3)), [2]);
}
