import { fromUnits, toUnits } from '../../base/decimal.js';
import { nameBalance } from '../../ledger/reads/balance-cover.js';
import type { Balance, Currency } from '../../ledger/reads/gateway-facts.js';
import {
  addSums,
  NO_SENDS,
  pendingDrop,
  type ReconciledBalance,
  type ReportedDrop,
  type UnexplainedDrop,
} from '../../ledger/reads/reconciliation.js';
import { type Debit, groupSends, sumFor } from './send-sums.js';

interface ReadingToCompare {
  readonly balances: readonly Balance[];
  readonly before: readonly ReconciledBalance[];
  /** Sends that every reading shows from now on. */
  readonly settled: readonly Debit[];
  /** Sends that ended lately. */
  readonly recent: readonly Debit[];
  readonly open: readonly Debit[];
  /** The largest of each currency. */
  readonly fees: ReadonlyMap<number, string>;
  /** False if sends are missing that the balance may lack. */
  readonly hasAllSends: boolean;
  readonly currencies: readonly Currency[];
  /** When the gateway was asked: wall clock, ms. */
  readonly at: number;
  /** An operator accepted all reports up to then: wall clock, ms. */
  readonly acceptedUpTo?: number | undefined;
}

/** @returns also what to report now */
export function compareReading(reading: ReadingToCompare): {
  readonly compared: readonly ReconciledBalance[];
  readonly drops: readonly UnexplainedDrop[];
} {
  const { currencies, hasAllSends, fees } = reading;
  const settled = groupSends(reading.settled, fees);
  const recent = groupSends(reading.recent, fees);
  const open = groupSends(reading.open, fees);
  const before = pairBalances(reading);
  const verdicts = before.map((known) => {
    const view = { balance: known, all: before, currencies };
    const sums = {
      settled: addSums([known.settled, sumFor(view, settled)]),
      recent: sumFor(view, recent),
      open: sumFor(view, open),
    };
    return compareBalance({ ...known, ...sums, ...(!hasAllSends && { baseline: undefined }) }, reading);
  });
  return {
    compared: verdicts.map(({ compared }) => compared),
    drops: verdicts.flatMap(({ compared, dropped }) =>
      dropped === undefined ? [] : [{ amount: fromUnits(dropped), currency: nameBalance(compared, currencies) }],
    ),
  };
}

const NEW_BALANCE = {
  ...{ baseline: undefined, decimalsSeen: 0, settled: NO_SENDS, recent: NO_SENDS, open: NO_SENDS, reported: '0' },
  ...{ unexplained: undefined, incomparable: undefined, isSuspected: false, drop: undefined },
} as const;

/**
 * Pairs each balance with its record. A missing balance counts as empty, as some gateways omit those. A new balance may
 * be a renamed one, so then nothing is known.
 */
function pairBalances({ balances, before }: ReadingToCompare): ReconciledBalance[] {
  const sums = addUpSame(balances);
  const isNew = sums.some((balance) => !before.some((known) => isSame(known, balance)));
  const stated = sums.map((balance) => {
    const known = before.find((other) => isSame(other, balance)) ?? NEW_BALANCE;
    return { ...known, ...balance, decimalsSeen: Math.max(known.decimalsSeen, decimalsOf(balance.amount)) };
  });
  const missing = before
    .filter((known) => !sums.some((balance) => isSame(known, balance)))
    .map((known) => ({ ...known, amount: '0' }));
  const renamed = missing.filter(({ drop }) => drop !== undefined).map((known) => ({ ...known, baseline: undefined }));
  return [...stated, ...(isNew ? renamed : missing)];
}

/** A code that several networks share may occur once for each, without their names. */
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

function isSame(a: Balance, b: Balance): boolean {
  return a.paymentId === b.paymentId && a.symbol === b.symbol;
}

interface Verdict {
  readonly compared: ReconciledBalance;
  readonly dropped?: bigint;
}

/**
 * The rule: a balance must be at least its baseline, less the most that sends can have taken since. The baseline is the
 * reading with the highest result; a higher reading replaces it at once. So small drops add up, and an unused send
 * allowance explains no later drop. A deposit hides only what is taken before the next reading.
 */
function compareBalance(known: ReconciledBalance, { at, acceptedUpTo }: ReadingToCompare): Verdict {
  const amount = toUnits(known.amount);
  const floor = floorOf(known);
  const isBaseline = floor === undefined || amount >= floor;
  const track: ReconciledBalance = {
    ...known,
    ...(isBaseline && { baseline: { amount: known.amount, at }, settled: NO_SENDS, reported: '0' }),
    ...{ unexplained: undefined, incomparable: undefined, isSuspected: false, drop: pendingDrop(known, acceptedUpTo) },
  };
  const { high } = addSums([track.recent, track.open]);
  if (high === undefined) return { compared: { ...track, incomparable: UNBOUNDED } };
  if (floor === undefined) return { compared: { ...track, incomparable: 'this reading is the first to compare with' } };
  const missing = (isBaseline ? amount : floor) - toUnits(high) - amount;
  const unexplained = fromUnits(missing > 0n ? missing : 0n);
  if (missing <= toleranceOf(toUnits(track.baseline?.amount ?? '0'), track.decimalsSeen)) {
    return { compared: { ...track, unexplained } };
  }
  // One reading may be the gateway's mistake.
  if (!known.isSuspected) return { compared: { ...track, unexplained, isSuspected: true } };
  const reported = fromUnits(toUnits(track.reported) + missing);
  const drop = addDrop(track.drop, missing, at);
  return { compared: { ...track, unexplained: '0', reported, drop }, dropped: missing };
}

const UNBOUNDED =
  'a send may have taken more than can be said: its fee, or its rate in the unit of this balance, is not known';

/** A drop up to a thousandth of the baseline, or two steps of its last digit, is not reported. */
const TOLERANCE_PARTS = 1_000n;

function toleranceOf(baseline: bigint, decimalsSeen: number): bigint {
  const part = baseline / TOLERANCE_PARTS;
  const steps = 2n * 10n ** BigInt(36 - Math.min(36, decimalsSeen));
  return part > steps ? part : steps;
}

function decimalsOf(decimal: string): number {
  return decimal.split('.')[1]?.length ?? 0;
}

/** The least the balance must be, apart from sends it may lack. Undefined if unknown. */
function floorOf({ baseline, settled: { high }, reported }: ReconciledBalance): bigint | undefined {
  if (baseline === undefined || high === undefined) return undefined;
  return toUnits(baseline.amount) - toUnits(high) - toUnits(reported);
}

function addDrop(known: ReportedDrop | undefined, drop: bigint, at: number): ReportedDrop {
  return { amount: fromUnits(toUnits(known?.amount ?? '0') + drop), since: known?.since ?? at, at };
}
