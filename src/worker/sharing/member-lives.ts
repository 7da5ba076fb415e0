/** A process whose heartbeat stands still for this time, in ms, is taken for dead. */
export const GONE_AFTER_MS = 3_000;

/** A process that has shown nothing for this time is taken out of the registry, in ms. */
const FORGOTTEN_AFTER_MS = 60_000;

/** Who looks less often than this, in ms, has not seen that a heartbeat stands still. */
const LOOK_GAP_MAX_MS = 2_500;

/** As much of such a gap counts, in ms: with a slow Redis every look comes late, and the dead must be found all the same. */
const GAP_COUNTS_MS = 1_000;

interface Sight {
  readonly heartbeat: string | undefined;
  /** Since when it was seen to be this one. */
  readonly since: number;
}

/**
 * Follows the heartbeats of processes on this process's own clock: one whose heartbeat changes is alive, and so is one that
 * is seen for the first time, since its heart may beat in a moment.
 */
export class MemberLives {
  readonly #sights = new Map<string, Sight>();
  #lookedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param heartbeats - as they are now; undefined for a process that leaves. One that is not listed any more may have been
   * deleted by mistake: it counts until its time is over
   * @param now - monotonic, ms
   */
  note(heartbeats: ReadonlyMap<string, string | undefined>, now: number): void {
    const gapMs = now - this.#lookedAt;
    const unseenMs = gapMs > LOOK_GAP_MAX_MS ? gapMs - GAP_COUNTS_MS : 0;
    this.#lookedAt = now;
    for (const [id, heartbeat] of heartbeats) {
      const before = this.#sights.get(id);
      if (before?.heartbeat !== heartbeat || before === undefined) this.#sights.set(id, { heartbeat, since: now });
    }
    for (const [id, { heartbeat, since }] of this.#sights) {
      // Nothing was seen meanwhile, of which some may have lived.
      const seenSince = Math.min(now, since + unseenMs);
      if (!heartbeats.has(id) && now - seenSince >= GONE_AFTER_MS) this.#sights.delete(id);
      else this.#sights.set(id, { heartbeat, since: seenSince });
    }
  }

  /** The heartbeats of those that are alive, by id. */
  alive(now: number): ReadonlyMap<string, string> {
    const alive = [...this.#sights].flatMap(([id, { heartbeat, since }]) =>
      heartbeat === undefined || now - since >= GONE_AFTER_MS ? [] : [[id, heartbeat] as const],
    );
    return new Map(alive);
  }

  /** Those that are still listed although they ended long ago. */
  forgotten(now: number): string[] {
    return [...this.#sights].filter(([, { since }]) => now - since >= FORGOTTEN_AFTER_MS).map(([id]) => id);
  }
}
