/** The value below which a share of the values lies. @param share - 0.5 is the median */
export function quantile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export function median(values) {
  return quantile(values, 0.5);
}

export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** The times between neighbours, in ms. */
export function gapsOf(timesMs) {
  return timesMs.slice(1).map((timeMs, index) => timeMs - timesMs[index]);
}

/** How many events a second, from the first to the last. */
export function rateOf(timesMs) {
  return ((timesMs.length - 1) * 1_000) / (timesMs.at(-1) - timesMs[0]);
}

/** Seconds that `work` took. */
export async function secondsOf(work) {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}
