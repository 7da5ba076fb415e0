import type { Command } from 'commander';
import { systemClock } from '../../base/clock.js';
import { NotFoundError } from '../../base/errors.js';
import { formatAmount, formatCount, formatDuration, formatMoney, formatTimeUtc } from '../../base/format.js';
import { type AccountStats, readAccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance } from '../../ledger/reads/balance-cover.js';
import { progressOf, readBatchSummary } from '../../ledger/reads/batches.js';
import { type GatewayFacts, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import {
  type AccountStatistics,
  COUNTED_TODAY,
  type CurrencySum,
  estimateEnd,
  readStatistics,
} from '../../ledger/reads/statistics.js';
import { PAYOUT_STATES, type PayoutState, STATE_MEANING, WATCHED_STATES } from '../../ledger/states.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { describeEnd, estimateBacklog } from '../../operator/account-backlog.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help } from '../context/flags.js';
import { colourState, formatTable, formatText } from '../output/format-table.js';

type Colours = CliContext['colours'];
type Counts = Readonly<Record<PayoutState, number>>;

export function defineStatsCommand(command: Command, context: CliContext): void {
  command
    .option('--batch <name>', 'count the payouts of this batch only')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      help(
        'It begins as `payouts status` does, and counts the payouts by state and currency.',
        'payouts stats',
        'payouts stats --json | jq .unknown',
        'payouts stats --batch 2030-01-salaries',
      ),
    )
    .action(async ({ batch, json }: { batch?: string; json?: true }) => {
      await withAccount(context, async ({ ledger: { connection } }) => {
        if (batch === undefined) await showAccount(context, connection, json);
        else await showBatch(context, connection, batch, json);
      });
    });
}

/** Programs that read JSON need no headline, and so no queues, which are slow to load. */
async function loadStatus() {
  return import('./status-command.js');
}

async function readMoney(connection: LedgerConnection): Promise<MoneyFacts> {
  const [stats, statistics, facts] = await Promise.all([
    readAccountStats(connection),
    readStatistics(connection),
    readGatewayFacts(connection),
  ]);
  return { stats, statistics, facts, wallNow: systemClock.wallNow() };
}

async function showAccount(context: CliContext, connection: LedgerConnection, json: true | undefined): Promise<void> {
  const money = await readMoney(connection);
  if (json) {
    context.writeJson({ ...money.stats, ...toJsonFields(money) });
    return;
  }
  const { readStatus, formatStatus } = await loadStatus();
  const summary = await readStatus(context);
  const { colours } = context;
  context.write(`${formatStatus(summary, colours, moreFacts(money, colours))}\n${formatMoneyFacts(money, colours)}`);
}

function moreFacts(money: MoneyFacts, colours: Colours): string[][] {
  const { stats, statistics, facts, wallNow } = money;
  const { ratePerMinute } = estimateEnd(statistics, stats, wallNow);
  return [
    ['', 'rate', `${ratePerMinute.toFixed(1)} sends a minute over the last 10 minutes`],
    ['', 'sends begun', formatAmount(stats.sends)],
    ...describeBalance(facts, statistics.sums.queued, wallNow),
    ...(stats.latePayments === 0 ? [] : [['', 'paid too late', describeLate(stats, colours)]]),
  ];
}

function formatMoneyFacts(money: MoneyFacts, colours: Colours): string {
  const { oldestAgeMs } = money.stats;
  const ages = new Map<PayoutState, string>(
    WATCHED_STATES.map((state) => {
      const ageMs = oldestAgeMs[state];
      return [state, ageMs === null ? '' : `oldest for ${formatDuration(ageMs)}`];
    }),
  );
  return `${formatCounts(money.stats, colours, ages)}${formatSums(money)}`;
}

async function showBatch(
  context: CliContext,
  connection: LedgerConnection,
  name: string,
  json: true | undefined,
): Promise<void> {
  const batch = await readBatchSummary(connection, name);
  if (batch === undefined) throw new NotFoundError(`Batch ${name} not found`);
  const [money, headline] = await Promise.all([
    readMoney(connection),
    json ? undefined : loadStatus().then(async ({ readStatus }) => readStatus(context)),
  ]);
  const count = (state: PayoutState): number => batch.sums[state].reduce((sum, each) => sum + each.count, 0);
  const counts = Object.fromEntries(PAYOUT_STATES.map((state) => [state, count(state)])) as Counts;
  const queued = counts.queued === 0 ? 0 : (batch.ahead ?? money.stats.queued - counts.queued) + counts.queued;
  const backlog = estimateBacklog({ ...money, headline }, money.wallNow, queued);
  const { total, enqueuedAt, enqueuedBy = null, ahead = null, sums } = batch;
  if (json) {
    const endsAt = toTime(backlog.endsInMs === null ? undefined : money.wallNow + backlog.endsInMs);
    const about = { enqueuedAt, enqueuedBy, ahead, endsAt, why: backlog.why };
    context.writeJson({ batch: name, total, ...counts, ...about, progress: progressOf(batch), sums });
    return;
  }
  const by = enqueuedBy === null ? '' : ` by ${enqueuedBy}`;
  const parts = Object.entries(progressOf(batch)).map(([part, { count: payouts, sums: of }]) => {
    return ['', part, formatAmount(payouts), listSums(of, money.facts)];
  });
  const place =
    ahead === null ? 'not known' : ahead === 0 ? 'next' : `behind ${formatCount(ahead, 'other payout')} of the account`;
  const queue = [
    ['', 'its place', place],
    ['', 'its end', describeEnd(backlog, money.wallNow)],
  ];
  const heading = `Batch ${name}: ${formatCount(total, 'payout')}, enqueued ${formatTimeUtc(enqueuedAt)}${by}`;
  context.write(
    `${formatText(heading)}\n${formatTable(parts, [2])}\n${queued === 0 ? '' : `${formatTable(queue)}\n`}${formatCounts(counts, context.colours)}`,
  );
}

function listSums(sums: readonly CurrencySum[], { currencies }: GatewayFacts): string {
  return sums.map(({ amount, paymentId }) => formatMoney(amount, paymentId, currencies)).join(', ');
}

function describeLate({ latePayments }: AccountStats, colours: Colours): string {
  return colours.yellow(
    `${formatCount(latePayments, 'payout')} may have been paid twice: see lateGatewayId in \`payouts get ID\``,
  );
}

function formatCounts(counts: Counts, colours: Colours, ages = new Map<PayoutState, string>()): string {
  const rows = PAYOUT_STATES.map((state) => {
    const note = ages.get(state) ?? '';
    const text = counts[state] === 0 ? colours.dim(state) : colourState(state, colours);
    return ['', text, formatAmount(counts[state]), note, colours.dim(STATE_MEANING[state])];
  });
  const withAges = rows.some((row) => row[3] !== '');
  return formatTable(withAges ? rows : rows.map((row) => row.filter((_, column) => column !== 3)), [2]);
}

interface MoneyFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly facts: GatewayFacts;
  readonly wallNow: number;
}

function describeBalance(facts: GatewayFacts, queued: readonly CurrencySum[], wallNow: number): string[][] {
  const { balanceAt, failure, failureAt } = facts;
  const failed =
    failure === undefined ? [] : [['', '', `query failed ${ago(failureAt ?? wallNow, wallNow)}: ${failure}`]];
  if (balanceAt === undefined) return [['', 'balance', 'not known'], ...failed];
  const rows = compareBalance(facts, queued).map(({ currency, balance, queued: needed, isEnough }) => {
    const against =
      needed === undefined ? '' : `, ${formatAmount(needed, currency)} queued${isEnough ? '' : ': NOT ENOUGH'}`;
    return ['', 'balance', `${formatAmount(balance, currency)}${against} (${ago(balanceAt, wallNow)})`];
  });
  return [...rows, ...failed];
}

function ago(at: number, wallNow: number): string {
  return `${formatDuration(Math.max(0, wallNow - at))} ago`;
}

function formatSums({ statistics: { sums, today, asOf }, facts: { currencies } }: MoneyFacts): string {
  const toRows = (name: string, list: readonly CurrencySum[]): string[][] =>
    list.map(({ paymentId, symbol, count, amount }) => [
      ...['', name, formatAmount(count), formatMoney(amount, paymentId, currencies)],
      symbol ?? '',
    ]);
  const now = PAYOUT_STATES.flatMap((state) => toRows(state, sums[state]));
  const day = COUNTED_TODAY.flatMap((kind) => toRows(kind, today[kind]));
  // The sender counts every few seconds: these sums may lag.
  const counted = asOf === undefined ? '' : ` (events up to ${formatTimeUtc(new Date(asOf).toISOString())})`;
  return [
    now.length === 0 ? '' : `\nBy currency${counted}\n${formatTable(now, [2])}`,
    day.length === 0 ? '' : `\nToday (UTC)\n${formatTable(day, [2])}`,
  ].join('');
}

function toJsonFields({ stats, statistics, facts, wallNow }: MoneyFacts): object {
  const { ratePerMinute, endsAt } = estimateEnd(statistics, stats, wallNow);
  return {
    ratePerMinute,
    backlogEndsAt: toTime(endsAt),
    lastSendAt: toTime(statistics.lastSendAt),
    statisticsAsOf: toTime(statistics.asOf),
    balance: facts.balanceAt === undefined ? null : compareBalance(facts, statistics.sums.queued),
    balanceAt: toTime(facts.balanceAt),
    gatewayFailure: facts.failure ?? null,
    sums: statistics.sums,
    today: statistics.today,
  };
}

function toTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
