import { setImmediate as nextTurn } from 'node:timers/promises';
import { RedisUnavailableError } from '../errors.js';
import type { NewPayout } from '../ledger/payout.js';
import type { EnqueueResult, PayoutLedger } from '../ledger/payout-ledger.js';
import { runOutside } from './run-outside.js';

/** Payouts per script call: keeps Redis busy for less than a millisecond, and so leaves some of many calls for the next. */
const MAX_GROUP = 32;
/** Script calls at a time: with one, Redis would wait while the callers get their results, and they while Redis works. */
const AT_A_TIME = 2;

interface Call {
  readonly payout: NewPayout;
  readonly resolve: (result: EnqueueResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets calls that are made at the same time share a script call: Redis waits for its disk once for all of them. While two
 * groups are in Redis, the next gathers behind them.
 */
export class EnqueueGroups {
  readonly #ledger: Pick<PayoutLedger, 'enqueue'>;
  readonly #waiting: Call[] = [];
  readonly #runs = new Set<Promise<void>>();
  #running = 0;

  constructor(ledger: Pick<PayoutLedger, 'enqueue'>) {
    this.#ledger = ledger;
  }

  /**
   * @throws RedisUnavailableError also when a group in front of it found Redis unavailable: a call waits for one time
   * limit, not for one after the other; what the ledger throws otherwise
   */
  async enqueue(payout: NewPayout): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ payout, resolve, reject });
      if (this.#running < AT_A_TIME) this.#start();
    });
  }

  /** Resolves once no call waits for Redis; never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#runs);
  }

  #start(): void {
    this.#running += 1;
    const run = runOutside(async () => this.#run());
    this.#runs.add(run);
    void run.then(() => this.#runs.delete(run));
  }

  async #run(): Promise<void> {
    // Callers that got their results together call again together, each some microtasks later than the other.
    await nextTurn();
    while (this.#waiting.length > 0) {
      await this.#ask(this.#waiting.splice(0, MAX_GROUP));
      await nextTurn();
    }
    this.#running -= 1;
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
