/** The value below which a share of the values lies; NaN of none. @param share - 0.5 is the median */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The times between neighbours, in ms. */
export function gapsOf(timesMs: readonly number[]): number[] {
  return timesMs.slice(1).map((timeMs, index) => timeMs - (timesMs[index] ?? NaN));
}

/** How many events a second, from the first to the last. */
export function rateOf(timesMs: readonly number[]): number {
  return ((timesMs.length - 1) * 1_000) / ((timesMs.at(-1) ?? NaN) - (timesMs[0] ?? NaN));
}

/** Seconds that `work` took. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}
