import { setImmediate as nextTurn } from 'node:timers/promises';
import { RedisUnavailableError } from '../errors.js';
import type { NewPayout } from '../ledger/payout.js';
import type { EnqueueResult, PayoutLedger } from '../ledger/payout-ledger.js';
import { runOutside } from './run-outside.js';

/** Payouts per script call: keeps Redis busy for some two milliseconds. */
const MAX_GROUP = 100;

interface Call {
  readonly payout: NewPayout;
  readonly resolve: (result: EnqueueResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets calls that are made at the same time share a script call: Redis waits for its disk once for all of them. While one
 * group is in Redis, the next gathers behind it.
 */
export class EnqueueGroups {
  readonly #ledger: Pick<PayoutLedger, 'enqueue'>;
  readonly #waiting: Call[] = [];
  #running: Promise<void> | undefined;

  constructor(ledger: Pick<PayoutLedger, 'enqueue'>) {
    this.#ledger = ledger;
  }

  /**
   * @throws RedisUnavailableError also when the group in front of it found Redis unavailable: a call waits for one time
   * limit, not for one after the other; what the ledger throws otherwise
   */
  async enqueue(payout: NewPayout): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ payout, resolve, reject });
      this.#running ??= runOutside(async () => this.#run());
    });
  }

  /** Resolves once no call waits for Redis; never rejects. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    do {
      // Callers that got their results together call again together, each some microtasks later than the other.
      await nextTurn();
      await this.#ask(this.#waiting.splice(0, MAX_GROUP));
    } while (this.#waiting.length > 0);
    this.#running = undefined;
  }

  async #ask(group: readonly Call[]): Promise<void> {
    try {
      const results = await this.#ledger.enqueue(group.map(({ payout }) => payout));
      for (const [index, { resolve, reject }] of group.entries()) {
        const result = results[index];
        if (result === undefined) reject(new Error('The ledger returned no result for a payout'));
        else resolve(result);
      }
    } catch (error) {
      if (error instanceof RedisUnavailableError) {
        for (const { reject } of [...group, ...this.#waiting.splice(0)]) reject(error);
      } else {
        await this.#askEach(group, error);
      }
    }
  }

  /**
   * One record that somebody damaged fails the script of a whole group: asked one by one, only its own call fails. Those that
   * the failed script had accepted are found there then, and are not `created`.
   */
  async #askEach(group: readonly Call[], error: unknown): Promise<void> {
    const [first, ...others] = group;
    if (others.length === 0) {
      first?.reject(error);
      return;
    }
    await Promise.all(group.map(async (call) => this.#ask([call])));
  }
}
