import type { StepKind } from '../../world/world.js';
import type { Settings } from '../simulation/plan.js';

export type Scenario = Readonly<{
  payouts: number;
  workers: number;
  settings: Settings;
  accounts: number;
  hasOwnJournals: boolean;
  rates: readonly number[];
  wallOffsetsMs: readonly number[];
  lingerMs: readonly number[];
  restartAfterMs: number | undefined;
  rollbackDepths: readonly number[];
  from: number;
  deviationsUntil: number;
  faultsUntil: number;
  endAt: number;
}>;

const SETTINGS: Settings = {
  ...{ intervalMs: 1_002, guardMs: 1_000, leaseMs: 5_000, quarantineMs: 1_000 },
  ...{ inFlightMaxMs: 2_000, withdrawTimeoutMs: 3_000, commandTimeoutMs: 3_000 },
};

const BASE: Scenario = {
  ...{ payouts: 2, workers: 2, settings: SETTINGS, accounts: 1, hasOwnJournals: false, rates: [], wallOffsetsMs: [] },
  ...{ lingerMs: [], restartAfterMs: undefined, rollbackDepths: [1, 2] },
  ...{ from: 900, deviationsUntil: Infinity, faultsUntil: 25_000, endAt: 90_000 },
};

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

/**
 * - `hold`: a message is on its way for longer; `lose`: it never arrives.
 * - `stop`: a process is stopped (SIGSTOP) before the step; `crash`: it is killed.
 * - `rollback`: Redis comes back older, before the step.
 */
export type DeviationKind = (typeof DEVIATION_KINDS)[number];

export const DEVIATION_KINDS = ['hold', 'stop', 'crash', 'lose', 'rollback'] as const;

export type Deviation = Readonly<{
  at: number;
  kind: DeviationKind;
  /** What is held or stopped is let go right before the step of this number; undefined: once everything else is over. */
  until?: number | undefined;
  changes?: number | undefined;
}>;

export type Schedule = readonly Deviation[];

export type Step = Readonly<{
  index: number;
  kind: StepKind;
  label: string;
  process: string;
  state: string;
  mayDeviate: boolean;
}>;

const MATTERS: ReadonlySet<StepKind> = new Set(['command', 'arrival', 'response', 'timeout', 'write', 'mark']);

export function mattersForRelease({ kind }: Step): boolean {
  return MATTERS.has(kind);
}

export function isWaiting({ kind, until }: Deviation): boolean {
  return (kind === 'hold' || kind === 'stop') && until === undefined;
}

const READS = new Set(['readPayout', 'findForgottenSends', 'readSending', 'queued']);

/**
 * Which deviations of a step make a difference. A process that is stopped before it hears a reply stands for most late
 * replies, a read that is lost for one that is repeated.
 */
export function deviationsOf({ kind, label }: Pick<Step, 'kind' | 'label'>): readonly DeviationKind[] {
  switch (kind) {
    case 'command':
      if (READS.has(label)) return ['rollback'];
      return label === 'readSender' ? ['hold', 'rollback'] : ['hold', 'lose', 'rollback'];
    case 'reply':
      return READS.has(label) || label === 'readSender' ? ['stop'] : ['hold', 'lose', 'stop', 'crash'];
    case 'response':
      return ['lose', 'stop', 'crash'];
    case 'arrival':
      return ['hold', 'lose'];
    case 'disk':
    case 'write':
    case 'timer':
      return ['stop', 'crash'];
    default:
      return [];
  }
}

export function focusedDeviationsOf(step: Pick<Step, 'kind' | 'label'>): readonly DeviationKind[] {
  const { kind, label } = step;
  if (kind === 'command') return label === 'acquireLease' || label === 'renewLease' ? ['hold'] : [];
  if (kind === 'reply') return READS.has(label) ? [] : ['stop'];
  return kind === 'disk' ? ['stop'] : [];
}
