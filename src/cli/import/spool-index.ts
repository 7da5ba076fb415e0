const FIRST_SLOTS = 2 ** 12;
/** Share of used slots; above it, probe sequences grow long. */
const MAX_LOAD = 0.6;

/**
 * Finds the offsets in the spool at which a payoutId may be, to detect repeated ids.
 *
 * It keeps a hash and an offset for each, in flat arrays: 12 bytes a slot, so 20 to 40 bytes a payout, where a Map of
 * payoutIds would take 150. The caller tells ids with the same hash apart by reading the spool.
 */
export class SpoolIndex {
  #hashes = new Uint32Array(FIRST_SLOTS);
  /** Plus 1; 0 is a free slot. Float64 holds integers far beyond the 4 GB of 32 bits. */
  #offsets = new Float64Array(FIRST_SLOTS);
  #count = 0;

  add(payoutId: string, offset: number): void {
    if (this.#count >= this.#hashes.length * MAX_LOAD) this.#grow();
    this.#put(fnv1a(payoutId), offset + 1);
    this.#count += 1;
  }

  /** The offsets of payouts whose payoutId has the same hash: mostly none or one. */
  find(payoutId: string): number[] {
    const hash = fnv1a(payoutId);
    const found: number[] = [];
    const mask = this.#hashes.length - 1;
    for (let slot = hash & mask; this.#offsets[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] === hash) found.push((this.#offsets[slot] ?? 0) - 1);
    }
    return found;
  }

  #put(hash: number, value: number): void {
    const mask = this.#hashes.length - 1;
    let slot = hash & mask;
    while (this.#offsets[slot] !== 0) slot = (slot + 1) & mask;
    this.#hashes[slot] = hash;
    this.#offsets[slot] = value;
  }

  #grow(): void {
    const [hashes, offsets] = [this.#hashes, this.#offsets];
    this.#hashes = new Uint32Array(hashes.length * 2);
    this.#offsets = new Float64Array(offsets.length * 2);
    for (const [slot, value] of offsets.entries()) if (value !== 0) this.#put(hashes[slot] ?? 0, value);
  }
}

/** The FNV-1a hash of a text, 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
