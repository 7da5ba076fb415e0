import { setImmediate as nextTurn } from 'node:timers/promises';
import { RedisUnavailableError, StoppedError } from '../base/errors.js';
import type { EnqueueResult, PayoutLedger } from '../ledger/payout-ledger.js';
import type { NewPayout } from '../ledger/payout.js';
import { runOutside } from './run-outside.js';

/**
 * Payouts per script call: Redis is busy for under a millisecond, and some of many calls are left for the next group.
 */
const MAX_GROUP = 32;
/** With one script call at a time, Redis would idle while callers get results, and callers while Redis works. */
const AT_A_TIME = 2;

interface Call {
  readonly payout: NewPayout;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: EnqueueResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Shares script calls among concurrent calls, so Redis waits for its disk once for all. While two groups are in Redis,
 * the next one gathers.
 */
export class EnqueueGroups {
  readonly #ledger: Pick<PayoutLedger, 'enqueue'>;
  readonly #waiting: Call[] = [];
  readonly #open = new Set<Call>();
  readonly #asking = new Set<Promise<void>>();
  #running = 0;

  constructor(ledger: Pick<PayoutLedger, 'enqueue'>) {
    this.#ledger = ledger;
  }

  /**
   * @throws RedisUnavailableError also if an earlier group found Redis unavailable, so that a call waits for one time
   * limit only
   */
  async enqueue(payout: NewPayout, signal: AbortSignal | undefined): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      const call = { payout, signal, resolve, reject };
      this.#open.add(call);
      this.#waiting.push(call);
      if (this.#running < AT_A_TIME) this.#start();
    });
  }

  /** Resolves once the calls open now have ended, whatever is called meanwhile; never rejects. */
  async settled(): Promise<void> {
    const calls = [...this.#open];
    while (calls.some((call) => this.#open.has(call))) {
      // Between two groups no call is running.
      await (this.#asking.size === 0 ? nextTurn() : Promise.race(this.#asking));
    }
    // Lets the callers continue first.
    await nextTurn();
  }

  #start(): void {
    this.#running += 1;
    void runOutside(async () => this.#run());
  }

  async #run(): Promise<void> {
    // Callers that got results together call again together, a few microtasks apart.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const asking = this.#ask(this.#takeGroup());
      this.#asking.add(asking);
      await asking;
      this.#asking.delete(asking);
      await nextTurn();
    }
    this.#running -= 1;
  }

  /** An aborted call ends here, unsent. A later abort changes nothing: the payout may be in the ledger. */
  #takeGroup(): Call[] {
    const group = this.#waiting.splice(0, MAX_GROUP);
    const isAborted = ({ signal }: Call): boolean => signal?.aborted === true;
    for (const call of group.filter(isAborted)) {
      this.#reject(call, abortedCall(call.payout));
    }
    return group.filter((call) => !isAborted(call));
  }

  async #ask(group: readonly Call[]): Promise<void> {
    if (group.length === 0) return;
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
   * A damaged record fails the script of its whole group. Asked one by one, only its own call fails. Payouts that the
   * failed script accepted are then not `created`.
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

export function abortedCall({ payoutId }: NewPayout): StoppedError {
  return new StoppedError(`Payout ${payoutId} was not enqueued: the call was aborted`);
}
