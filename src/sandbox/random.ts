/** Numbers from 0 to below 1 that depend on nothing but the seed, so that a run with jitter can be repeated. */
export type Random = () => number;

/** The mulberry32 generator: small, fast and even enough for delays and shares. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
