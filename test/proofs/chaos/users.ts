import { setTimeout as delay } from 'node:timers/promises';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { Payment } from '../../../src/sandbox/sandbox-account.js';
import { SIGNING, UNSIGNED } from '../signing.js';
import { addressOf, amountOf, PLATFORM_ID } from './account.js';
import { Decisions } from './decisions.js';
import { Operator, type OperatorOptions } from './operator.js';

const CHECK_EVERY_MS = 150;

export interface UsersOptions extends OperatorOptions {
  /** When each payout is enqueued, in ms since the chaos began. */
  readonly enqueueAtMs: readonly number[];
  readonly sinceChaosMs: () => number;
  /** What the gateway's support tells. */
  readonly readPayments: () => Promise<readonly Payment[]>;
  /** How often the workers' logs say that one keeps a pause which Redis has forgotten. */
  readonly countKeptPauses: () => Promise<number>;
  /** With keys: see `Plan`. */
  readonly forgetsKey: boolean;
  readonly pauseAtMs: number | undefined;
}

/** The application that enqueues, and the operator who runs the command that is shown when an account is stopped. */
export class Users {
  readonly producer: PayoutProducer;
  readonly payoutIds: readonly string[];
  readonly #options: UsersOptions;
  readonly #accepted = new Set<string>();
  readonly #stopped = new AbortController();
  readonly operator: Operator;
  /** With keys, he decides about payouts, too. */
  readonly decisions: Decisions | undefined;
  #keptPauses = 0;
  #hasPaused = false;
  #working: Promise<void> | undefined;

  constructor(options: UsersOptions) {
    this.#options = options;
    this.operator = new Operator(options);
    const { redisUrl, keys, readPayments, forgetsKey } = options;
    const signing = keys === undefined ? {} : { ...SIGNING, keysFile: keys.keysFile };
    this.producer = new PayoutProducer({ redisUrl, platformId: PLATFORM_ID, ...signing });
    const ignored = [UNSIGNED.payoutId];
    const { producer, operator } = this;
    this.decisions = keys && new Decisions({ producer, operator, readPayments, ignored, forgetsKey });
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
    if (this.#options.keys !== undefined) await this.#enqueueUnsigned();
    while (!this.#stopped.signal.aborted) {
      await this.#enqueueWhatIsDue();
      const stats = await this.readStats();
      if (stats !== undefined) await this.#operate(stats);
      await delay(CHECK_EVERY_MS);
    }
  }

  async #operate(stats: AccountStats): Promise<void> {
    await this.operator.endStop(stats);
    if (this.decisions === undefined || stats.objections.length > 0) return;
    await this.#pauseWhenDue();
    try {
      await this.decisions.decide();
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return;
    }
    if (!stats.paused) await this.#endKeptPause();
  }

  async #pauseWhenDue(): Promise<void> {
    const { pauseAtMs = Infinity, sinceChaosMs } = this.#options;
    if (this.#hasPaused || sinceChaosMs() < pauseAtMs) return;
    this.#hasPaused = true;
    await this.operator.decide('payouts pause', 'unsigned');
  }

  /** Only the worker knows of a pause that Redis has forgotten: its log says what to run. */
  async #endKeptPause(): Promise<void> {
    const count = await this.#options.countKeptPauses();
    if (count === this.#keptPauses) return;
    await this.operator.endKeptPause();
    this.#keptPauses = await this.#options.countKeptPauses();
  }

  async #enqueueUnsigned(): Promise<void> {
    const stranger = new PayoutProducer({ redisUrl: this.#options.redisUrl, platformId: PLATFORM_ID });
    await stranger.enqueue(UNSIGNED);
    await stranger.close();
  }

  async #enqueueWhatIsDue(): Promise<void> {
    const { enqueueAtMs, sinceChaosMs } = this.#options;
    const due = this.payoutIds.filter(
      (payoutId, index) => (enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !this.#accepted.has(payoutId),
    );
    if (due.length === 0) return;
    try {
      await this.producer.enqueueMany(
        due.map((payoutId) => ({ payoutId, paymentId: 1, amount: amountOf(payoutId), addressTo: addressOf(payoutId) })),
      );
      for (const payoutId of due) this.#accepted.add(payoutId);
    } catch {
      // Redis unavailable: whether they were accepted is unclear, so the application asks again.
    }
  }
}
