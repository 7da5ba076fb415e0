import type { Settings } from '../simulation/plan.js';

/** A small world of which every schedule is tried: two workers unless it says otherwise, and what makes it special. */
export interface Scenario {
  readonly payouts: number;
  readonly workers: number;
  readonly settings: Settings;
  readonly accounts: number;
  readonly hasOwnJournals: boolean;
  readonly rates: readonly number[];
  readonly wallOffsetsMs: readonly number[];
  readonly lingerMs: readonly number[];
  readonly restartAfterMs: number | undefined;
  readonly rollbackDepths: readonly number[];
  readonly from: number;
  readonly deviationsUntil: number;
  readonly faultsUntil: number;
  readonly endAt: number;
}

const SETTINGS: Settings = {
  intervalMs: 1_002,
  guardMs: 1_000,
  leaseMs: 5_000,
  quarantineMs: 1_000,
  inFlightMaxMs: 2_000,
  withdrawTimeoutMs: 3_000,
  commandTimeoutMs: 3_000,
};

const BASE: Scenario = {
  payouts: 2,
  workers: 2,
  settings: SETTINGS,
  accounts: 1,
  hasOwnJournals: false,
  rates: [],
  wallOffsetsMs: [],
  lingerMs: [],
  restartAfterMs: undefined,
  rollbackDepths: [1, 2],
  from: 900,
  deviationsUntil: Infinity,
  faultsUntil: 25_000,
  endAt: 90_000,
};

/** The first worker's requests are on their way for as long as they may be, the second's arrive at once. */
const SLOW_FIRST = { lingerMs: [SETTINGS.inFlightMaxMs, 1] };
const LONG = { faultsUntil: 60_000, endAt: 180_000 };
const DRIFTING = { rates: [1.0005, 0.9995], ...LONG };

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  plain: BASE,
  single: { ...BASE, workers: 1, payouts: 1, restartAfterMs: 300 },
  slow: { ...BASE, ...SLOW_FIRST },
  'short-lease': {
    ...BASE,
    ...SLOW_FIRST,
    faultsUntil: 5_000,
    settings: { ...SETTINGS, leaseMs: 500, quarantineMs: 0 },
  },
  'cut-off': { ...BASE, settings: { ...SETTINGS, withdrawTimeoutMs: 500 } },
  drifting: {
    ...{ ...BASE, ...DRIFTING, lingerMs: [30_000, 1] },
    settings: { ...SETTINGS, inFlightMaxMs: 30_000 },
    // The first withdrawal begins: for the half minute that it is on its way, there are heartbeats only.
    deviationsUntil: 5_000,
  },
  'drifting-cut-off': { ...BASE, ...DRIFTING, settings: { ...SETTINGS, inFlightMaxMs: 30_000, withdrawTimeoutMs: 5 } },
  'own-journals': {
    ...BASE,
    ...SLOW_FIRST,
    hasOwnJournals: true,
    settings: { ...SETTINGS, quarantineMs: 6_000, commandTimeoutMs: 1_000 },
  },
  'wall-clocks': { ...BASE, ...SLOW_FIRST, wallOffsetsMs: [0, 3_600_000] },
  restart: { ...BASE, ...SLOW_FIRST, restartAfterMs: 300 },
  epochs: { ...BASE, ...SLOW_FIRST, rollbackDepths: [1, 2, 3, 4, 6] },
  accounts: { ...BASE, accounts: 2, payouts: 1, restartAfterMs: 300 },
};

export function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`There is no scenario ${name}`);
  return scenario;
}
