import { fromUnits, toUnits } from '../../decimal.js';
import { nameBalance } from '../../ledger/balance-cover.js';
import type { Balance } from '../../ledger/gateway-facts.js';
import {
  pendingDrop,
  type ExplainedSum,
  type ReconciledBalance,
  type ReportedDrop,
} from '../../ledger/reconciliation.js';
import { judgeBalance, NEW_TRACK, type BalanceTrack, type BalanceVerdict } from './judge-balance.js';
import type { Market } from './rates.js';
import { decimalsOf, groupDebits, sumFor, type Debit, type DebitSum } from './send-sums.js';

export interface ReadingToCompare {
  readonly balances: readonly Balance[];
  readonly before: readonly ReconciledBalance[];
  readonly ended: readonly Debit[];
  readonly open: Iterable<Debit>;
  /** The largest of each currency. */
  readonly fees: ReadonlyMap<number, string>;
  readonly market: Market;
  /** When the gateway was asked: wall clock, ms. */
  readonly at: number;
  /** When the sends were looked at, after the response: wall clock, ms. */
  readonly until: number;
  readonly settleMs: number;
  /** Until when an operator accepted what was reported: wall clock, ms. */
  readonly acceptedUpTo?: number | undefined;
}

/** What is to be told now. */
export interface FoundDrop {
  readonly amount: string;
  /** Of the balance. */
  readonly name: string;
}

/** Judges every balance of one response. Pure. */
export function compareReading(reading: ReadingToCompare): {
  readonly compared: readonly ReconciledBalance[];
  readonly drops: readonly FoundDrop[];
} {
  const { market, fees } = reading;
  const largestFee = (paymentId: number): string | undefined => fees.get(paymentId);
  const groups = { ended: groupDebits(reading.ended, largestFee), open: groupDebits(reading.open, largestFee) };
  const pairs = pairBalances(reading);
  const all = pairs.map(({ balance }) => balance);
  const judged = pairs.map(({ balance, known }) => {
    const track = toTrack(balance, known);
    const view = { balance, places: track.places, all, currencies: market.currencies };
    const sums = { ended: sumFor(view, groups.ended), open: sumFor(view, groups.open) };
    const verdict = judgeBalance(
      track,
      { at: reading.at, until: reading.until, amount: toUnits(balance.amount), ...sums },
      reading.settleMs,
    );
    return {
      verdict,
      stored: toStored(balance, verdict, {
        ...reading,
        reported: known && pendingDrop(known, reading.acceptedUpTo),
        openSum: sums.open,
      }),
    };
  });
  return {
    compared: judged.map(({ stored }) => stored),
    drops: judged.flatMap(({ stored, verdict: { drop } }) =>
      drop === undefined ? [] : [{ amount: fromUnits(drop), name: nameBalance(stored, market.currencies) }],
    ),
  };
}

interface Pair {
  readonly balance: Balance;
  readonly known: ReconciledBalance | undefined;
}

/**
 * A balance that is not stated any more is empty, as some gateways leave those out. Where another one is stated for the first
 * time, it may have got another name: then nothing is known of it.
 */
function pairBalances({ balances: given, before }: ReadingToCompare): Pair[] {
  const balances = addUpSame(given);
  const stated = balances.map((balance) => ({ balance, known: before.find((other) => isSame(other, balance)) }));
  const missing = before.filter((known) => !balances.some((balance) => isSame(known, balance)));
  const isRenamed = stated.some(({ known }) => known === undefined);
  const empty = missing.map((known) => ({ balance: { ...nameOf(known), amount: '0' }, known }));
  const kept = isRenamed ? empty.filter(({ known }) => known.drop !== undefined).map(forget) : empty;
  return [...stated, ...kept];
}

/** A code that several networks share may be stated once for each, without their names. */
function addUpSame(balances: readonly Balance[]): Balance[] {
  const sums: Balance[] = [];
  for (const balance of balances) {
    const index = sums.findIndex((sum) => isSame(sum, balance));
    const same = sums[index];
    if (same === undefined) sums.push(balance);
    else sums[index] = { ...same, amount: fromUnits(toUnits(same.amount) + toUnits(balance.amount)) };
  }
  return sums;
}

function forget({ balance, known }: { balance: Balance; known: ReconciledBalance }): Pair {
  return { balance, known: { ...known, baseline: undefined, recent: [] } };
}

function nameOf({ paymentId, symbol }: Balance): Pick<Balance, 'paymentId' | 'symbol'> {
  return { paymentId, symbol };
}

function isSame(a: Balance, b: Balance): boolean {
  return a.paymentId === b.paymentId && a.symbol === b.symbol;
}

function toTrack({ amount }: Balance, known: ReconciledBalance | undefined): BalanceTrack {
  const places = Math.max(known?.places ?? 0, decimalsOf(amount));
  if (known === undefined) return { ...NEW_TRACK, places };
  const { baseline, settled, recent, reported, isSuspected } = known;
  return {
    baseline: baseline && { ...baseline, amount: toUnits(baseline.amount) },
    settled: parseSum(settled),
    recent: recent.map((sum) => ({ ...parseSum(sum), at: sum.at })),
    places,
    reported: toUnits(reported),
    isSuspected,
  };
}

interface Found {
  /** What was reported before. */
  readonly reported: ReportedDrop | undefined;
  readonly openSum: DebitSum;
  readonly at: number;
}

function toStored(balance: Balance, { track, unexplained, drop }: BalanceVerdict, found: Found): ReconciledBalance {
  const { baseline, settled, recent, places, reported, isSuspected } = track;
  return {
    ...balance,
    baseline: baseline && { ...baseline, amount: fromUnits(baseline.amount) },
    places,
    settled: formatSum(settled),
    recent: recent.map((sum) => ({ ...formatSum(sum), at: sum.at })),
    open: formatSum(found.openSum),
    unexplained: unexplained === undefined ? undefined : fromUnits(unexplained > 0n ? unexplained : 0n),
    doubt: describeDoubt(track, found.openSum, unexplained),
    isSuspected,
    reported: fromUnits(reported),
    drop: addDrop(found.reported, drop, found.at),
  };
}

function addDrop(known: ReportedDrop | undefined, drop: bigint | undefined, at: number): ReportedDrop | undefined {
  if (drop === undefined) return known;
  return { amount: fromUnits(toUnits(known?.amount ?? '0') + drop), since: known?.since ?? at, at };
}

function describeDoubt({ recent }: BalanceTrack, open: DebitSum, unexplained: bigint | undefined): string | undefined {
  if (unexplained !== undefined) return undefined;
  const isUnbounded = [open, ...recent].some(({ high }) => high === undefined);
  return isUnbounded
    ? 'a send may have taken more than can be said: its fee, or its rate in the unit of this balance, is not known'
    : 'this reading is the first to compare with';
}

function parseSum({ count, low, high }: ExplainedSum): DebitSum {
  return { count, low: toUnits(low), high: high === undefined ? undefined : toUnits(high) };
}

function formatSum({ count, low, high }: DebitSum): ExplainedSum {
  return { count, low: fromUnits(low), high: high === undefined ? undefined : fromUnits(high) };
}
