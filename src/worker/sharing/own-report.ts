import type { Clock } from '../../base/clock.js';
import type { Heartbeat, MemberReport } from '../../ledger/member-registry.js';

/**
 * Whether this process can send for an account, as far as it knows.
 *
 * - `opening`: its journal is being read
 * - `refused`: its journal is unusable or does not match the ledger
 */
export type AccountFitness = 'opening' | 'fit' | 'refused';

/** How long a refused account is left to other processes, in ms. */
const HOLD_DOWN_MS = 60_000;

/**
 * Remembers refused accounts. A process that does not work for an account cannot know its fitness. Without this, an
 * account that two processes refuse would move between them forever.
 */
export class HoldDown {
  readonly #refusedAt = new Map<number, number>();

  /** @param now - monotonic, ms @returns whether other processes should work for the account */
  isUnfit(platformId: number, fitness: AccountFitness, now: number): boolean {
    if (fitness === 'refused') this.#refusedAt.set(platformId, now);
    if (fitness !== 'fit') return true;
    return now - (this.#refusedAt.get(platformId) ?? Number.NEGATIVE_INFINITY) < HOLD_DOWN_MS;
  }
}

type Content = Omit<MemberReport, 'version'>;

/** An unchanged report is written again after this time, in ms, because it may have been deleted. */
const PUBLISH_AGAIN_MS = 30_000;

/** What this process publishes: a heartbeat always, a report after a change. */
export class OwnReport {
  readonly #clock: Pick<Clock, 'now'>;
  #published: { readonly content: string; readonly at: number; readonly report: MemberReport } | undefined;
  /** The last report to be written. Only the reply shows whether it arrived. */
  #content: string | undefined;
  #version = 0;
  #mustPublish = false;
  #count = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /**
   * Different reports never share a version, even after a lost reply. Readers of the first would skip the second.
   * @returns the report to write, if any
   */
  due(report: Content): MemberReport | undefined {
    const { content: published, at = Number.NEGATIVE_INFINITY } = this.#published ?? {};
    const content = describeContent(report);
    if (content === published && !this.#mustPublish && this.#clock.now() - at < PUBLISH_AGAIN_MS) return undefined;
    if (content !== this.#content) this.#version += 1;
    this.#content = content;
    // Stays set until the reply confirms the report.
    this.#mustPublish = true;
    return { ...report, version: this.#version };
  }

  notePublished(report: MemberReport): void {
    this.#published = { content: describeContent(report), at: this.#clock.now(), report };
    this.#mustPublish = false;
  }

  publishAgain(): void {
    this.#mustPublish = true;
  }

  get folder(): string | undefined {
    return this.#published?.report.folder;
  }

  nextHeartbeat(): Heartbeat {
    this.#count += 1;
    return { count: this.#count, version: this.#published?.report.version ?? 0 };
  }
}

function describeContent({ folder, accounts, unfit, claims, held }: Content): string {
  return JSON.stringify([folder, accounts, unfit, claims, held]);
}
