import type { Command } from 'commander';
import { systemClock } from '../../base/clock.js';
import {
  formatAmount,
  formatDuration,
  formatMoney,
  formatSeconds,
  formatTime,
  formatTimeUtc,
} from '../../base/format.js';
import { type AccountStats, readAccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance } from '../../ledger/reads/balance-cover.js';
import { type GatewayFacts, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { PAYOUT_STATES, type PayoutState, STATE_MEANING, WATCHED_STATES } from '../../ledger/states.js';
import {
  type AccountStatistics,
  type BacklogEstimate,
  COUNTED_TODAY,
  type CurrencySum,
  estimateEnd,
  readStatistics,
} from '../../ledger/reads/statistics.js';
import {
  findRefused,
  type KnownWorker,
  readWorkers,
  type SenderLife,
  awaitHeartbeat,
} from '../../ledger/reads/workers.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { withAccount, withProducer } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { hasKeyring } from '../context/keys.js';
import { help } from '../context/flags.js';
import { colourState, formatTable } from '../output/format-table.js';

type Colours = CliContext['colours'];
type Counts = Readonly<Record<PayoutState, number>>;

/** A live sender shows up within a second. */
const LISTEN_MS = 2_500;

export function defineStatsCommand(command: Command, context: CliContext): void {
  command
    .option('--batch <name>', 'count the payouts of this batch only')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      help('', 'payouts stats', 'payouts stats --json | jq .unknown', 'payouts stats --batch 2030-01-salaries'),
    )
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
      const life = await awaitHeartbeat(connection, systemClock, LISTEN_MS);
      const isSending = life.kind === 'alive' || life.kind === 'changing';
      const refused = isSending ? undefined : findRefused(await readWorkers(connection), systemClock.wallNow());
      const { colours } = context;
      context.write(
        formatAccount(money, life, describeSending(stats, hasKeyring(context.environment), refused, colours), colours),
      );
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

function formatAccount(money: MoneyFacts, life: SenderLife, sending: string, colours: Colours): string {
  const { stats } = money;
  const { oldestAgeMs } = stats;
  const facts = [
    ['', 'sending', sending],
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

/** A sender waits after a takeover, or after a send without a response. */
function describeHoldOff({ holdOffMs }: { readonly holdOffMs: number }): string {
  return holdOffMs === 0 ? '' : `; sends nothing for another ${formatSeconds(holdOffMs)}`;
}

/** @param refused - refuses to send while no other worker sends */
function describeSending(
  stats: AccountStats,
  isSigned: boolean,
  refused: KnownWorker | undefined,
  colours: Colours,
): string {
  const [advice] = adviseAccount(stats, { isSigned });
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

interface MoneyFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly facts: GatewayFacts;
  readonly wallNow: number;
}

/** @param life - only a live sender sends the backlog */
function describePace({ stats, statistics, facts, wallNow }: MoneyFacts, life: SenderLife): string[][] {
  const sender = life.kind === 'alive' || life.kind === 'changing' ? stats.sender : null;
  const estimate = estimateEnd(statistics, { ...stats, sender }, wallNow);
  return [
    ['', 'rate', `${estimate.ratePerMinute.toFixed(1)} sends a minute`],
    ['', 'backlog', describeBacklog(stats, estimate, sender !== null, wallNow)],
    ['', 'last send', statistics.lastSendAt === undefined ? 'none yet' : ago(statistics.lastSendAt, wallNow)],
    ...describeBalance(facts, statistics.sums.queued, wallNow),
  ];
}

function describeBacklog(
  { queued, paused, objections }: AccountStats,
  { endsAt }: BacklogEstimate,
  isSending: boolean,
  wallNow: number,
): string {
  if (queued === 0) return 'nothing is queued';
  if (objections.length > 0 || paused) return `${queued} queued; it waits until the account is no longer stopped`;
  if (!isSending) return `${queued} queued; it waits until a worker sends`;
  if (endsAt === undefined) return `${queued} queued; its end is unknown: nothing was sent in the last minutes`;
  const at = `${formatTime(new Date(endsAt).toISOString())} UTC`;
  return `${queued} queued, sent in about ${formatDuration(endsAt - wallNow)} (${at}), without those that are scheduled later`;
}

function describeBalance(facts: GatewayFacts, queued: readonly CurrencySum[], wallNow: number): string[][] {
  const { balanceAt, failure, failureAt } = facts;
  const failed =
    failure === undefined ? [] : [['', '', `query failed ${ago(failureAt ?? wallNow, wallNow)}: ${failure}`]];
  if (balanceAt === undefined) return [['', 'balance', 'not known'], ...failed];
  const rows = compareBalance(facts, queued).map(({ currency, balance, queued: needed, isEnough }) => {
    const against = needed === undefined ? '' : `, ${formatAmount(needed)} queued${isEnough ? '' : ': NOT ENOUGH'}`;
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
      ...['', name, String(count), formatMoney(amount, paymentId, currencies)],
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
