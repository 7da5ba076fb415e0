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
  /** Those for which a caller waits. */
  readonly #open = new Set<Call>();
  /** The groups that are in Redis. */
  readonly #asking = new Set<Promise<void>>();
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
      const call = { payout, resolve, reject };
      this.#open.add(call);
      this.#waiting.push(call);
      if (this.#running < AT_A_TIME) this.#start();
    });
  }

  /** Resolves once the calls that are open now have ended, whatever is called meanwhile; never rejects. */
  async settled(): Promise<void> {
    const calls = [...this.#open];
    while (calls.some((call) => this.#open.has(call))) {
      // Between two groups none is asking.
      await (this.#asking.size === 0 ? nextTurn() : Promise.race(this.#asking));
    }
    // Who made them continues first.
    await nextTurn();
  }

  #start(): void {
    this.#running += 1;
    void runOutside(async () => this.#run());
  }

  async #run(): Promise<void> {
    // Callers that got their results together call again together, each some microtasks later than the other.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const asking = this.#ask(this.#waiting.splice(0, MAX_GROUP));
      this.#asking.add(asking);
      await asking;
      this.#asking.delete(asking);
      await nextTurn();
    }
    this.#running -= 1;
  }

  async #ask(group: readonly Call[]): Promise<void> {
    try {
      const results = await this.#ledger.enqueue(group.map(({ payout }) => payout));
      for (const [index, call] of group.entries()) {
        const result = results[index];
        if (result === undefined) this.#reject(call, new Error('The ledger returned no result for a payout'));
        else this.#resolve(call, result);
      }
    } catch (error) {
      if (error instanceof RedisUnavailableError) {
        for (const call of [...group, ...this.#waiting.splice(0)]) this.#reject(call, error);
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
    if (first !== undefined && others.length === 0) {
      this.#reject(first, error);
      return;
    }
    await Promise.all(group.map(async (call) => this.#ask([call])));
  }

  #resolve(call: Call, result: EnqueueResult): void {
    this.#open.delete(call);
    call.resolve(result);
  }

  #reject(call: Call, error: unknown): void {
    this.#open.delete(call);
    call.reject(error);
  }
}
