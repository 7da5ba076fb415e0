/** A small seeded generator (mulberry32). Everything that a run leaves to chance comes from one of these. */
export class Random {
  #state: number;

  constructor(seed: number) {
    // Neighbouring seeds must not begin alike.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    this.next();
  }

  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number) {
    // No draw for what never happens, so that a fault that is switched off changes nothing else.
    return probability > 0 && this.next() < probability;
  }

  between(low: number, high: number) {
    return low + (high - low) * this.next();
  }

  whole(low: number, high: number) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  heavyTail(typical: number, longest: number) {
    return Math.min(longest, typical / Math.max(1e-9, 1 - this.next()));
  }
}
