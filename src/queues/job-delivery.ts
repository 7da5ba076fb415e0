import type { Queue } from 'bullmq';
import type { PayoutLedger, StateWithJob } from '../ledger/payout-ledger.js';
import { listPayoutIds } from '../ledger/payout-list.js';
import type { Payout } from '../ledger/payout.js';
import { readPayouts } from '../ledger/read-payouts.js';
import { toJobId, type PayoutJobData, type PayoutQueues } from './payout-queues.js';

/** So many payouts are looked at in one step. */
const STEP = 500;

export interface JobDeliveryOptions {
  readonly ledger: PayoutLedger;
  readonly queues: PayoutQueues;
  /** Before the first status poll of a payout, in ms. */
  readonly firstPollAfterMs: number;
}

/** Makes sure that every payout that waits for a job has one: what the ledger says, the queues must ring for. */
export class JobDelivery {
  readonly #ledger: PayoutLedger;
  readonly #queues: PayoutQueues;
  readonly #firstPollAfterMs: number;

  constructor({ ledger, queues, firstPollAfterMs }: JobDeliveryOptions) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#firstPollAfterMs = firstPollAfterMs;
  }

  /**
   * Adds the jobs of payouts that changed but whose job was not added, as after a crash between the two.
   * @param changedBefore - wall clock, ms; later changes are left to whoever is adding their job right now
   * @returns how many entries were dealt with
   */
  async deliverOutbox(changedBefore: number): Promise<number> {
    const entries = await this.#ledger.readOutbox(STEP, changedBefore);
    for (const state of ['queued', 'in_progress'] as const) {
      const payoutIds = entries.filter((entry) => entry.state === state).map(({ payoutId }) => payoutId);
      if (payoutIds.length === 0) continue;
      await this.addMissing(state, payoutIds);
      await this.#ledger.clearOutbox(state, payoutIds);
    }
    return entries.length;
  }

  /** Adds the jobs of those of the payouts that are in the state and have none that could move them on. */
  async addMissing(state: StateWithJob, payoutIds: readonly string[]): Promise<number> {
    const payouts = await readPayouts(this.#ledger.connection, payoutIds);
    const waiting = payouts.filter((payout) => payout.state === state);
    const queue = state === 'queued' ? this.#queues.withdraw : this.#queues.transactionstatus;
    const missing = await this.#queues.findMissing(queue, waiting);
    await removeFinished(queue, missing);
    if (state === 'queued') await this.#queues.addWithdrawJobs(missing);
    else await this.#queues.addStatusJobs(missing, this.#firstPollAfterMs);
    return missing.length;
  }

  /**
   * Checks every payout of a state, in small steps.
   * @returns how many jobs were missing
   */
  async checkAll(state: StateWithJob, signal: AbortSignal): Promise<number> {
    let added = 0;
    let cursor: string | undefined;
    do {
      const page = await listPayoutIds(this.#ledger.connection, {
        state,
        limit: STEP,
        ...(cursor === undefined ? {} : { cursor }),
      });
      added += await this.addMissing(state, page.payoutIds);
      cursor = page.next;
    } while (cursor !== undefined && !signal.aborted);
    return added;
  }
}

/** BullMQ silently ignores an added job whose id is there, also when that one is finished. */
async function removeFinished(queue: Queue<PayoutJobData>, payouts: readonly Payout[]): Promise<void> {
  for (const payout of payouts) await queue.remove(toJobId(payout));
}
