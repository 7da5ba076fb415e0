import { setTimeout as delay } from 'node:timers/promises';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import { SIGNING, UNSIGNED } from '../signing.js';
import { Operator, type OperatorOptions } from './operator.js';
import { paymentOf, PLATFORM_ID, type Plan } from './plan.js';

const CHECK_EVERY_MS = 150;

export interface UsersOptions extends Omit<OperatorOptions, 'forgetsKey'> {
  readonly plan: Plan;
  readonly sinceChaosMs: () => number;
  /** How often the workers' logs say that one keeps a pause which Redis has forgotten. */
  readonly countKeptPauses: () => Promise<number>;
}

/** The application that enqueues, and the operator, who with keys decides about payouts, too. */
export class Users {
  readonly producer: PayoutProducer;
  readonly operator: Operator;
  readonly payoutIds: readonly string[];
  readonly #options: UsersOptions;
  readonly #accepted = new Set<string>();
  #isStopped = false;
  #keptPauses = 0;
  #hasPaused = false;
  readonly #working: Promise<void>;

  constructor(options: UsersOptions) {
    const { plan, redisUrl, keys } = options;
    this.#options = options;
    this.operator = new Operator({ ...options, forgetsKey: plan.forgetsKey });
    const signing = keys === undefined ? {} : { ...SIGNING, keysFile: keys.keysFile };
    this.producer = new PayoutProducer({ redisUrl, platformId: PLATFORM_ID, ...signing });
    this.payoutIds = plan.enqueueAtMs.map((_, index) => `P-${index + 1}`);
    this.#working = this.#work();
  }

  /** Redis came back older: the application asks again for all that it asked for, under the same payoutIds. */
  askAgain(): void {
    this.#accepted.clear();
  }

  async readStats(): Promise<AccountStats | undefined> {
    return this.producer.stats().catch(() => undefined);
  }

  get haveAskedForAll(): boolean {
    return this.#accepted.size === this.payoutIds.length;
  }

  /** With keys, whether an operator has nothing to decide any more. */
  async isDecided({ unknown, rejected, held }: AccountStats): Promise<boolean> {
    const unsigned = await this.producer.get(UNSIGNED.payoutId);
    return unknown + rejected + held === (unsigned?.state === 'held' ? 1 : 0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
    await this.producer.close();
  }

  async #work(): Promise<void> {
    const { redisUrl, keys } = this.#options;
    if (keys !== undefined) await enqueueUnsigned(redisUrl, PLATFORM_ID);
    while (!this.#isStopped) {
      await this.#enqueueWhatIsDue();
      const stats = await this.readStats();
      if (stats !== undefined) await this.#operate(stats);
      await delay(CHECK_EVERY_MS);
    }
  }

  async #operate(stats: AccountStats): Promise<void> {
    const { keys, plan, sinceChaosMs, countKeptPauses } = this.#options;
    await this.operator.endStop(stats);
    if (keys === undefined || stats.objections.length > 0) return;
    if (!this.#hasPaused && sinceChaosMs() >= plan.pauseAtMs) {
      this.#hasPaused = true;
      await this.operator.pause();
    }
    try {
      await this.operator.decide(this.producer);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return;
    }
    // Only the worker knows of a pause that Redis has forgotten: its log says what to run.
    if (stats.paused || (await countKeptPauses()) === this.#keptPauses) return;
    await this.operator.endKeptPause();
    this.#keptPauses = await countKeptPauses();
  }

  async #enqueueWhatIsDue(): Promise<void> {
    const { plan, sinceChaosMs } = this.#options;
    const due = this.payoutIds.filter(
      (payoutId, index) => (plan.enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !this.#accepted.has(payoutId),
    );
    if (due.length === 0) return;
    try {
      await this.producer.enqueueMany(due.map(paymentOf));
      for (const payoutId of due) this.#accepted.add(payoutId);
    } catch {
      // Redis unavailable: whether they were accepted is unclear, so the application asks again.
    }
  }
}

export async function enqueueUnsigned(redisUrl: string, platformId: number): Promise<void> {
  const stranger = new PayoutProducer({ redisUrl, platformId });
  await stranger.enqueue(UNSIGNED);
  await stranger.close();
}
