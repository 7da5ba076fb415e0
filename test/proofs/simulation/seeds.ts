import { setImmediate as nextTurn } from 'node:timers/promises';
import { soundPieces } from '../../world/worker.js';
import { mistakes, policyMistakes, signedMistakes } from './planted/index.js';
import { runSeed } from './simulation.js';
import type { Situation } from './situations.js';

/** Seeds that run one after the other. */
export interface SeedRange {
  readonly from: number;
  readonly seeds: number;
  /** The name of a mistake to plant; then the range ends with the first seed that catches it. */
  readonly planted?: string;
  readonly signed?: boolean;
  readonly policed?: boolean;
}

export interface BrokenSeed {
  readonly seed: number;
  readonly broken: string;
}

/** What a range came to. */
export interface RangeResult {
  readonly broken: readonly BrokenSeed[];
  /** Withdrawals that reached the gateway. */
  readonly arrivals: number;
  readonly virtualMs: number;
  /** How many runs came into each situation. */
  readonly situations: readonly (readonly [Situation, number])[];
}

export async function runSeeds({
  from,
  seeds,
  planted,
  signed = false,
  policed = false,
}: SeedRange): Promise<RangeResult> {
  const mistake = [...mistakes, ...signedMistakes, ...policyMistakes].find(({ name }) => name === planted);
  const pieces = { ...soundPieces, ...mistake?.pieces };
  const broken: BrokenSeed[] = [];
  const met = new Map<Situation, number>();
  let arrivals = 0;
  let virtualMs = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    // Between two runs the event loop gets a turn, without which nothing that was collected is ever given free.
    await nextTurn();
    const result = await runSeed(seed, { pieces, signed, policed });
    arrivals += result.arrivals;
    virtualMs += result.endedAt;
    for (const situation of result.situations) met.set(situation, (met.get(situation) ?? 0) + 1);
    if (result.broken !== undefined) broken.push({ seed, broken: result.broken });
    if (planted !== undefined && broken.length > 0) break;
  }
  return { broken, arrivals, virtualMs, situations: [...met] };
}
