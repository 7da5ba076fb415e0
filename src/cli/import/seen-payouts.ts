/**
 * Remembers the payouts of a file, to find a payoutId that stands in it twice. Of each it keeps the payoutId and two
 * small integers. Two payouts with the same payoutId whose fingerprints agree by chance are told apart by the ledger.
 */
export class SeenPayouts {
  readonly #lines = new Map<string, number>();
  /** By line. */
  readonly #fingerprints: number[] = [];

  /**
   * @param json - the payout
   * @returns the line in which the payoutId stood first, and whether with the same data; undefined where it is new
   */
  note(payoutId: string, json: string, line: number): { readonly line: number; readonly same: boolean } | undefined {
    const fingerprint = fnv1a(json);
    const first = this.#lines.get(payoutId);
    if (first !== undefined) return { line: first, same: this.#fingerprints[first] === fingerprint };
    this.#lines.set(payoutId, line);
    while (this.#fingerprints.length < line) this.#fingerprints.push(0);
    this.#fingerprints.push(fingerprint);
    return undefined;
  }
}

/** The FNV-1a hash of a text, 31 bits: an integer so small that V8 stores it in place. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 1;
}
