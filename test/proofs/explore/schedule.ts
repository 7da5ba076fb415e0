import type { StepKind } from '../../world/world.js';

/**
 * - `hold`: a message is on its way for longer; `lose`: it never arrives.
 * - `stop`: a process is stopped (SIGSTOP) before the step; `crash`: it is killed.
 * - `rollback`: Redis comes back older, before the step.
 */
export type DeviationKind = (typeof DEVIATION_KINDS)[number];

export const DEVIATION_KINDS = ['hold', 'stop', 'crash', 'lose', 'rollback'] as const;

export interface Deviation {
  readonly at: number;
  readonly kind: DeviationKind;
  /** What is held or stopped is let go right before the step of this number; undefined: once everything else is over. */
  readonly until?: number | undefined;
  readonly changes?: number | undefined;
}

export type Schedule = readonly Deviation[];

export interface Step {
  readonly index: number;
  readonly kind: StepKind;
  readonly label: string;
  readonly process: string;
  readonly state: string;
  readonly mayDeviate: boolean;
}

/** What waits is let go before one of these: only there does it matter. */
const MATTERS: ReadonlySet<StepKind> = new Set(['command', 'arrival', 'response', 'timeout', 'write', 'mark']);

export function mattersForRelease({ kind }: Step): boolean {
  return MATTERS.has(kind);
}

export function isWaiting({ kind, until }: Deviation): boolean {
  return (kind === 'hold' || kind === 'stop') && until === undefined;
}

/** Commands that change nothing, and whose delay is that of what follows them. */
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

/** The deviations by which two workers meet: a late lease command, and a stop while a reply or the disk is awaited. */
export function focusedDeviationsOf(step: Pick<Step, 'kind' | 'label'>): readonly DeviationKind[] {
  const { kind, label } = step;
  if (kind === 'command') return label === 'acquireLease' || label === 'renewLease' ? ['hold'] : [];
  if (kind === 'reply') return READS.has(label) ? [] : ['stop'];
  return kind === 'disk' ? ['stop'] : [];
}
