import type { Figure } from './figure.js';

export interface BenchmarkRun {
  /** Smaller numbers: only checks that it runs and measures something. */
  readonly quick: boolean;
  /** Tells the person who waits how far it is. */
  readonly note: (line: string) => void;
}

/** Every row has the same columns; lists are only in the JSON. */
export type Row = Readonly<Record<string, unknown>>;

export interface BenchmarkResult {
  readonly rows: readonly Row[];
  readonly figures: readonly Figure[];
  readonly [more: string]: unknown;
}

export type Benchmark = (run: BenchmarkRun) => Promise<BenchmarkResult>;
