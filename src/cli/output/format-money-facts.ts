import { formatDuration, formatMoney, formatTime, formatTimeUtc } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import { compareBalance } from '../../ledger/balance-cover.js';
import type { GatewayFacts } from '../../ledger/gateway-facts.js';
import { PAYOUT_STATES } from '../../ledger/states.js';
import {
  COUNTED_TODAY,
  estimateEnd,
  type AccountStatistics,
  type BacklogEstimate,
  type CurrencySum,
} from '../../ledger/statistics.js';
import type { SenderLife } from '../../ledger/watch-heartbeat.js';
import { formatTable } from './format-table.js';

/** What `payouts stats` shows beside the counts of the ledger. */
export interface MoneyFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly facts: GatewayFacts;
  /** Wall clock, ms. */
  readonly wallNow: number;
}

/** Rate, expected end and balance, as rows of facts. @param life - only a sender that lives sends the backlog */
export function describePace({ stats, statistics, facts, wallNow }: MoneyFacts, life: SenderLife): string[][] {
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
  if (endsAt === undefined)
    return `${queued} queued; no end can be told, because nothing was measured in the last minutes`;
  const at = `${formatTime(new Date(endsAt).toISOString())} UTC`;
  return `${queued} queued, sent in about ${formatDuration(endsAt - wallNow)} (${at}), without those that are scheduled later`;
}

function describeBalance(facts: GatewayFacts, queued: readonly CurrencySum[], wallNow: number): string[][] {
  const { balanceAt, failure, failureAt } = facts;
  const failed =
    failure === undefined ? [] : [['', '', `query failed ${ago(failureAt ?? wallNow, wallNow)}: ${failure}`]];
  if (balanceAt === undefined) return [['', 'balance', 'not known'], ...failed];
  const rows = compareBalance(facts, queued).map(({ currency, balance, queued: needed, isEnough }) => {
    const against = needed === undefined ? '' : `, ${needed} queued${isEnough ? '' : ': NOT ENOUGH'}`;
    return ['', 'balance', `${balance} ${currency}${against} (${ago(balanceAt, wallNow)})`];
  });
  return [...rows, ...failed];
}

function ago(at: number, wallNow: number): string {
  return `${formatDuration(Math.max(0, wallNow - at))} ago`;
}

/** What is in each state and what happened today, by currency; '' where there is nothing. */
export function formatSums({ statistics: { sums, today, asOf }, facts: { currencies } }: MoneyFacts): string {
  const toRows = (name: string, list: readonly CurrencySum[]): string[][] =>
    list.map(({ paymentId, symbol, count, amount }) => [
      ...['', name, String(count), formatMoney(amount, paymentId, currencies)],
      symbol ?? '',
    ]);
  const now = PAYOUT_STATES.flatMap((state) => toRows(state, sums[state]));
  const day = COUNTED_TODAY.flatMap((kind) => toRows(kind, today[kind]));
  // The sender counts every few seconds, so they may be behind the counts above.
  const counted = asOf === undefined ? '' : ` (events up to ${formatTimeUtc(new Date(asOf).toISOString())})`;
  return [
    now.length === 0 ? '' : `\nBy currency${counted}\n${formatTable(now, [2])}`,
    day.length === 0 ? '' : `\nToday (UTC)\n${formatTable(day, [2])}`,
  ].join('');
}

/** The same as fields of `payouts stats --json`. */
export function toJsonFields({ stats, statistics, facts, wallNow }: MoneyFacts): object {
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
