/**
 * Whether this process can send for an account, as far as it knows by itself.
 *
 * - `opening`: its journal is being read
 * - `refused`: its journal cannot be used, or does not match the ledger
 */
export type AccountFitness = 'opening' | 'fit' | 'refused';

/** For how long an account that was refused is left to other processes, in ms. */
export const HOLD_DOWN_MS = 60_000;

/**
 * Remembers which accounts were refused. A process that does not work for an account does not know whether it could: without
 * this, an account that two processes refuse would move between them all the time.
 */
export class HoldDown {
  readonly #refusedAt = new Map<number, number>();

  /** @param now - monotonic, ms @returns whether other processes are to work for the account */
  isUnfit(platformId: number, fitness: AccountFitness, now: number): boolean {
    if (fitness === 'refused') this.#refusedAt.set(platformId, now);
    if (fitness !== 'fit') return true;
    return now - (this.#refusedAt.get(platformId) ?? Number.NEGATIVE_INFINITY) < HOLD_DOWN_MS;
  }
}
