import type { Clock } from '../../base/clock.js';
import type { Heartbeat, MemberReport } from '../../ledger/member-registry.js';

/**
 * Whether this process can send for an account, as far as it knows by itself.
 *
 * - `opening`: its journal is being read
 * - `refused`: its journal cannot be used, or does not match the ledger
 */
export type AccountFitness = 'opening' | 'fit' | 'refused';

/** For how long an account that was refused is left to other processes, in ms. */
const HOLD_DOWN_MS = 60_000;

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

type Content = Omit<MemberReport, 'version'>;

/** A report that nothing changed in is written again after this time, in ms: somebody may have deleted it. */
const TELL_AGAIN_MS = 30_000;

/** What this process tells the others: a report when something changed, a heartbeat always. */
export class OwnReport {
  readonly #clock: Pick<Clock, 'now'>;
  #told: { readonly content: string; readonly at: number; readonly report: MemberReport } | undefined;
  /** Of the last report that was to be written: whether it was is not known before the reply. */
  #content: string | undefined;
  #version = 0;
  #mustTell = false;
  #count = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /**
   * Two reports that differ never have the same version, also where the reply to the first was lost: who has read that one
   * would not read the other.
   * @returns the report that has to be written, or undefined
   */
  due(report: Content): MemberReport | undefined {
    const { content: told, at = Number.NEGATIVE_INFINITY } = this.#told ?? {};
    const content = describeContent(report);
    if (content === told && !this.#mustTell && this.#clock.now() - at < TELL_AGAIN_MS) return undefined;
    if (content !== this.#content) this.#version += 1;
    this.#content = content;
    // Until it is known to be there.
    this.#mustTell = true;
    return { ...report, version: this.#version };
  }

  noteTold(report: MemberReport): void {
    this.#told = { content: describeContent(report), at: this.#clock.now(), report };
    this.#mustTell = false;
  }

  /** What was written may be gone. */
  tellAgain(): void {
    this.#mustTell = true;
  }

  /** As it was told last. */
  get folder(): string | undefined {
    return this.#told?.report.folder;
  }

  nextHeartbeat(): Heartbeat {
    this.#count += 1;
    return { count: this.#count, version: this.#told?.report.version ?? 0 };
  }
}

function describeContent({ folder, accounts, unfit, claims, held }: Content): string {
  return JSON.stringify([folder, accounts, unfit, claims, held]);
}
