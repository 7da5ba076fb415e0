/** Minimum slots per entry. A fuller table is slower to search. */
const ROOM = 1.5;
const FIRST_CAPACITY = 1_024;
/** Different, so that texts sharing one half do not share the other. */
const LOW = { start: 0x811c9dc5, factor: 0x01000193 };
const HIGH = { start: 0x9e3779b9, factor: 0x85ebca6b };

/**
 * Maps texts to a few values in 14 to 27 bytes an entry; a Map takes 100. It keeps only a 64-bit hash of each text.
 * Among 100,000 texts, two share a hash with a probability of 1 in 10^9.
 */
export class CompactMap<Value> {
  #values: Value[] = [];
  #low = new Uint32Array(FIRST_CAPACITY);
  #high = new Uint32Array(FIRST_CAPACITY);
  /** Number of the entry's value, from 1; 0 marks a free slot. */
  #codes = new Uint8Array(FIRST_CAPACITY);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @throws RangeError at the 256th distinct value */
  set(text: string, value: Value): void {
    if (this.#size * ROOM >= this.#codes.length) this.#grow();
    this.#put(hash(text, LOW), hash(text, HIGH), this.#codeOf(value));
  }

  get(text: string): Value | undefined {
    const code = this.#codes[this.#find(hash(text, LOW), hash(text, HIGH))] ?? 0;
    return this.#values[code - 1];
  }

  #codeOf(value: Value): number {
    const index = this.#values.indexOf(value);
    if (index >= 0) return index + 1;
    if (this.#values.length === 255) throw new RangeError('A CompactMap holds at most 255 different values');
    return this.#values.push(value);
  }

  #put(low: number, high: number, code: number): void {
    const slot = this.#find(low, high);
    if (this.#codes[slot] === 0) this.#size += 1;
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#codes[slot] = code;
  }

  /** The slot of the entry, or the free one for it. The capacity is a power of two. */
  #find(low: number, high: number): number {
    const mask = this.#codes.length - 1;
    let slot = low & mask;
    while (this.#codes[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const [low, high, codes] = [this.#low, this.#high, this.#codes];
    const capacity = codes.length * 2;
    this.#low = new Uint32Array(capacity);
    this.#high = new Uint32Array(capacity);
    this.#codes = new Uint8Array(capacity);
    this.#size = 0;
    for (const [slot, code] of codes.entries()) if (code !== 0) this.#put(low[slot] ?? 0, high[slot] ?? 0, code);
  }
}

function hash(text: string, { start, factor }: typeof LOW): number {
  let value = start;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), factor);
  value = Math.imul(value ^ (value >>> 16), 0x7feb352d);
  value = Math.imul(value ^ (value >>> 15), 0x846ca68b);
  return (value ^ (value >>> 16)) >>> 0;
}
