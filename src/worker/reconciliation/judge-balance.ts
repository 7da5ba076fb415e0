import { addSums, NO_DEBITS, unitOf, type DebitSum } from './send-sums.js';

/**
 * The rule by which a balance is found too low. Pure: amounts are units of decimal.ts, times are those of the readings.
 *
 * What the balance must be at least is a baseline, less the most that sends can have taken since. The baseline is the
 * reading from which this is highest: every reading that is higher replaces it at once. So small drops add up, what a send
 * may have taken and did not explains no later drop, and a deposit hides only what is taken before the next reading.
 */

/** What is kept of a balance from reading to reading. */
export interface BalanceTrack {
  /** Undefined until a reading can serve as one. */
  readonly baseline: { readonly amount: bigint; readonly at: number } | undefined;
  /** Ended sends that the baseline has not, and that every later reading has. */
  readonly settled: DebitSum;
  /** Ended sends that a reading may not have yet, by the reading that saw them end. */
  readonly recent: readonly (DebitSum & { readonly at: number })[];
  /** The most decimals that it was ever stated with. */
  readonly places: number;
  /** The part of what was reported that the baseline still contains. */
  readonly reported: bigint;
  /** The last reading was too low. */
  readonly isSuspected: boolean;
}

export interface BalanceReading {
  /** When the gateway was asked: wall clock, ms. */
  readonly at: number;
  /** When the sends were looked at, after the response: wall clock, ms. */
  readonly until: number;
  readonly amount: bigint;
  /** Sends that ended since the reading before. */
  readonly ended: DebitSum;
  /** Sends that had begun and not ended. */
  readonly open: DebitSum;
}

export interface BalanceVerdict {
  readonly track: BalanceTrack;
  /** How much lower it is than the sends explain; 0 or less where they do. Undefined where that cannot be said. */
  readonly unexplained: bigint | undefined;
  /** What is to be reported now: more than the tolerance, in two readings that follow each other. */
  readonly drop: bigint | undefined;
}

export const NEW_TRACK: BalanceTrack = {
  baseline: undefined,
  settled: NO_DEBITS,
  recent: [],
  places: 0,
  reported: 0n,
  isSuspected: false,
};

/** A drop up to a thousandth of the baseline, or two steps of its last digit, is not reported. */
const TOLERANCE_PARTS = 1_000n;

/** Sends that ended are kept apart by this part of the time in which they may be debited late. */
const BUCKETS = 10;

/** @param settleMs - after a send ended, the balance may lack its debit for so long, and until the next reading */
export function judgeBalance(before: BalanceTrack, reading: BalanceReading, settleMs: number): BalanceVerdict {
  const settled = settle(before, reading, settleMs);
  const { track, isNew } = chooseBaseline(settled, reading);
  const next = { ...track, isSuspected: false };
  const { baseline } = next;
  const pending = [...next.recent, reading.open].reduce<DebitSum>(addSums, NO_DEBITS).high;
  const floor = floorOf(next);
  if (baseline === undefined || floor === undefined || pending === undefined || isNew) {
    return { track: next, unexplained: undefined, drop: undefined };
  }
  const unexplained = floor - pending - reading.amount;
  if (unexplained <= toleranceOf(baseline.amount, next.places)) return { track: next, unexplained, drop: undefined };
  // One reading may be a mistake of the gateway's.
  if (!before.isSuspected) return { track: { ...next, isSuspected: true }, unexplained, drop: undefined };
  return { track: { ...next, reported: next.reported + unexplained }, unexplained: 0n, drop: unexplained };
}

/** @param baseline - a balance */
export function toleranceOf(baseline: bigint, places: number): bigint {
  const part = baseline / TOLERANCE_PARTS;
  const steps = 2n * unitOf(places);
  return part > steps ? part : steps;
}

/** What the balance must be at least, but for the sends that it may lack; undefined where nothing can be said. */
function floorOf({ baseline, settled, reported }: BalanceTrack): bigint | undefined {
  if (baseline === undefined || settled.high === undefined) return undefined;
  return baseline.amount - settled.high - reported;
}

/** Counts those as settled that ended long enough ago, and at an earlier reading; then adds those that ended now. */
function settle(track: BalanceTrack, { at, until, ended }: BalanceReading, settleMs: number): BalanceTrack {
  // A wall clock that was set back starts their time again.
  const known = track.recent.map((sum) => ({ ...sum, at: Math.min(sum.at, at) }));
  const isOver = (sum: { readonly at: number }): boolean => sum.at + settleMs <= at;
  const settled = known.filter(isOver).reduce<DebitSum>(addSums, track.settled);
  const kept = known.filter((sum) => !isOver(sum));
  return { ...track, settled, recent: ended.count === 0 ? kept : addRecent(kept, { ...ended, at: until }, settleMs) };
}

/** Put together with the last, they only take longer to settle. */
function addRecent(
  kept: BalanceTrack['recent'],
  ended: DebitSum & { readonly at: number },
  settleMs: number,
): BalanceTrack['recent'] {
  const last = kept.at(-1);
  const first = kept.at(-2)?.at ?? -Infinity;
  if (last === undefined || ended.at - first > settleMs / BUCKETS) return [...kept, ended];
  return [...kept.slice(0, -1), { ...addSums(last, ended), at: ended.at }];
}

/** A reading that is higher than the floor explains more from then on: it was a deposit, or sends took less than they could. */
function chooseBaseline(
  track: BalanceTrack,
  { amount, at }: BalanceReading,
): { readonly track: BalanceTrack; readonly isNew: boolean } {
  const floor = floorOf(track);
  if (floor !== undefined && amount < floor) return { track, isNew: false };
  const baseline = { amount, at };
  return { track: { ...track, baseline, settled: NO_DEBITS, reported: 0n }, isNew: floor === undefined };
}
