import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from '../../../src/producer/payout-producer.js';
import type { AccountStats } from '../../../src/ledger/account-stats.js';
import { addressOf, PLATFORM_ID } from './account.js';
import { Operator, type OperatorOptions } from './operator.js';

const CHECK_EVERY_MS = 150;

export interface UsersOptions extends OperatorOptions {
  /** When each payout is enqueued, in ms since the chaos began. */
  readonly enqueueAtMs: readonly number[];
  readonly sinceChaosMs: () => number;
}

/** The application that enqueues, and the operator who runs the command that is shown when an account is stopped. */
export class Users {
  readonly producer: PayoutProducer;
  readonly payoutIds: readonly string[];
  readonly #options: UsersOptions;
  readonly #accepted = new Set<string>();
  readonly #stopped = new AbortController();
  readonly operator: Operator;
  #working: Promise<void> | undefined;

  constructor(options: UsersOptions) {
    this.#options = options;
    this.operator = new Operator(options);
    this.producer = new PayoutProducer({ redisUrl: options.redisUrl, platformId: PLATFORM_ID });
    this.payoutIds = options.enqueueAtMs.map((_, index) => `P-${index + 1}`);
  }

  start(): void {
    this.#working ??= this.#work();
  }

  /** Redis came back older: the application asks again for all that it asked for, under the same payoutIds. */
  askAgain(): void {
    this.#accepted.clear();
  }

  /** @returns undefined while Redis is unavailable */
  async readStats(): Promise<AccountStats | undefined> {
    return this.producer.stats().catch(() => undefined);
  }

  get haveAskedForAll(): boolean {
    return this.#accepted.size === this.payoutIds.length;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
    await this.producer.close();
  }

  async #work(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#enqueueWhatIsDue();
      const stats = await this.readStats();
      if (stats !== undefined) await this.operator.endStop(stats);
      await delay(CHECK_EVERY_MS);
    }
  }

  async #enqueueWhatIsDue(): Promise<void> {
    const { enqueueAtMs, sinceChaosMs } = this.#options;
    const due = this.payoutIds.filter(
      (payoutId, index) => (enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !this.#accepted.has(payoutId),
    );
    if (due.length === 0) return;
    try {
      await this.producer.enqueueMany(
        due.map((payoutId) => ({ payoutId, paymentId: 1, amount: '0.01', addressTo: addressOf(payoutId) })),
      );
      for (const payoutId of due) this.#accepted.add(payoutId);
    } catch {
      // Redis unavailable: whether they were accepted is unclear, so the application asks again.
    }
  }
}
