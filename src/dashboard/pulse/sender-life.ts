import type { LeaseHolder } from '../../ledger/read-sender-view.js';

/** The holder of the lease, and whether its process lives. */
export type SenderLife =
  | { readonly kind: 'none' }
  /** Not watched for long enough to say. */
  | (LeaseHolder & { readonly kind: 'checking' })
  /** `silentMs`: since its heartbeat was last seen to rise, or since it is watched. */
  | (LeaseHolder & { readonly kind: 'alive' | 'silent'; readonly silentMs: number });

/** The heartbeat rises every second; a machine that is busy may miss one. */
export const ALIVE_WITHIN_MS = 2_800;

/** A live sender is seen within this time of the first look, in ms: a second and a reserve. */
export const FIRST_HEARTBEAT_WITHIN_MS = 1_300;

/** A rise that was seen after a longer pause says nothing of the present. */
const LOOK_GAP_MAX_MS = 1_500;

/**
 * Says whether a sender is alive: only where its heartbeat rose while it was watched, because the lease of a dead process
 * stays. No clocks of two machines are compared.
 */
export class SenderLifeWatch {
  #holder: LeaseHolder | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #watchedSince = 0;
  #roseAt: number | undefined;

  /** Notes who holds the lease. @param now - monotonic, ms */
  note(holder: LeaseHolder | null, now: number): void {
    const isContinuous = now - this.#lookedAt <= LOOK_GAP_MAX_MS;
    const isSame = holder?.owner === this.#holder?.owner && holder?.epoch === this.#holder?.epoch;
    const isLater = !isSame || holder?.heartbeat !== this.#holder?.heartbeat;
    if (!isContinuous || !isSame) {
      this.#watchedSince = now;
      this.#roseAt = undefined;
    }
    // A process that takes the lease while it is watched is alive as well.
    if (isContinuous && isLater) this.#roseAt = now;
    this.#holder = holder;
    this.#lookedAt = now;
  }

  /** @param now - monotonic, ms */
  life(now: number): SenderLife {
    if (this.#holder === null) return { kind: 'none' };
    const silentMs = now - (this.#roseAt ?? this.#watchedSince);
    if (this.#roseAt !== undefined) {
      return { ...this.#holder, kind: silentMs < ALIVE_WITHIN_MS ? 'alive' : 'silent', silentMs };
    }
    if (silentMs < FIRST_HEARTBEAT_WITHIN_MS) return { ...this.#holder, kind: 'checking' };
    return { ...this.#holder, kind: 'silent', silentMs };
  }
}
