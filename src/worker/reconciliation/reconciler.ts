import { fromUnits } from '../../decimal.js';
import type { Balance } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { ReconciledBalance, Reconciliation } from '../../ledger/reconciliation.js';
import { readReconciliation, reportDrop, saveReconciliation } from '../../ledger/reconciliation-store.js';
import type { Logger } from '../../logger.js';
import { compareReading, type FoundDrop } from './compare-reading.js';
import { followSends, openSends, type FollowedSends } from './follow-sends.js';
import { currentRates, type Market } from './rates.js';

export interface ReconcilerOptions {
  readonly connection: LedgerConnection;
  /** After a send ended, the balance may lack its debit for so long, and until the next reading, in ms. */
  readonly settleMs: number;
  /** Stops the account; undefined where a drop is only reported. */
  readonly pause: ((reason: string) => Promise<void>) | undefined;
  readonly logger: Logger;
}

interface State {
  readonly followed: FollowedSends;
  /** Since when no event was missed: wall clock, ms. */
  readonly followedSince: number;
  /** By the last comparison. */
  readonly balances: readonly ReconciledBalance[];
}

/**
 * Compares each balance with what the payouts explain. A send's begin is in the ledger before its first byte is written, so
 * the events up to after the response name every send that the balance may show: no send races with a reading.
 *
 * It continues where the last sender was, by what stands in Redis: a restart or a takeover hides nothing that is taken
 * meanwhile. Anyone who can write to Redis can change it, and hide a drop.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  #state: State | undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /**
   * Reads the balances, and judges them. Where that fails, it is logged, and they are returned all the same.
   * @throws what `read` throws
   */
  async watch(read: () => Promise<readonly Balance[]>, market: Market): Promise<readonly Balance[]> {
    const state = await this.#attempt(async () => this.#catchUp(market));
    const at = this.#options.connection.clock.wallNow();
    const balances = await read();
    if (state !== undefined) {
      this.#state = await this.#attempt(async () => this.#judge(state, { balances, market, at }));
    }
    return balances;
  }

  /** After a failure all is read again from Redis: what was counted may not have been written. */
  async #attempt<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#state = undefined;
      const fields = { error: (error as Error).message };
      this.#options.logger.warn(fields, 'the balance could not be compared with the payouts');
      return undefined;
    }
  }

  async #catchUp(market: Market): Promise<State> {
    const { connection } = this.#options;
    const state = this.#state ?? (await this.#load(market));
    state?.followed.sends.noteRates(currentRates(market));
    if (state !== undefined && (await followSends(connection, state.followed))) return state;
    // What was sent since is not known: all begins here. Only what does not depend on the sends is kept.
    const { reconciliation } = await readReconciliation(connection);
    const followed = await openSends(connection, undefined, reconciliation, market);
    await followSends(connection, followed);
    const balances = reconciliation?.balances ?? [];
    return { followed, followedSince: connection.clock.wallNow(), balances: balances.map(forgetBaseline) };
  }

  async #load(market: Market): Promise<State | undefined> {
    const { connection } = this.#options;
    const { reconciliation } = await readReconciliation(connection);
    if (reconciliation === undefined) return undefined;
    const { position, followedSince, balances } = reconciliation;
    const followed = await openSends(connection, position, reconciliation, market);
    return { followed, followedSince, balances };
  }

  /** @returns undefined where events are missing */
  async #judge(
    state: State,
    { balances, market, at }: { balances: readonly Balance[]; market: Market; at: number },
  ): Promise<State | undefined> {
    const { connection, settleMs } = this.#options;
    const { followed } = state;
    if (!(await followSends(connection, followed))) return undefined;
    const until = connection.clock.wallNow();
    const { sends } = followed;
    const ended = sends.takeEnded();
    const isSettled = at - state.followedSince >= settleMs;
    const { acceptedDrops } = await readReconciliation(connection);
    const { compared, drops } = compareReading({
      ...{ balances, market, at, until, settleMs, acceptedUpTo: acceptedDrops?.upTo },
      // A send that ended before events were followed may be debited late.
      before: isSettled && ended !== undefined ? state.balances : state.balances.map(forgetBaseline),
      ended: ended ?? [],
      open: sends.open,
      fees: sends.fees,
    });
    if (drops.length > 0) await this.#report(drops);
    const followedSince = ended === undefined ? at : Math.min(state.followedSince, at);
    await saveReconciliation(connection, {
      ...{ comparedAt: at, followedSince, position: followed.position, balances: compared },
      ...toTexts(followed),
    });
    return { followed, followedSince, balances: compared };
  }

  /** Before it is written that it was reported: where one of these fails, the drop is found again at the next reading. */
  async #report(drops: readonly FoundDrop[]): Promise<void> {
    const { connection, logger, pause } = this.#options;
    const list = drops.map(({ amount, name }) => `${amount} ${name}`).join(', ');
    const reason = `the balance fell by ${list} more than the payouts explain`;
    logger.error({ reason }, 'unexplained drop of the balance; see `payouts reconcile`');
    await pause?.(reason);
    await reportDrop(connection, reason);
  }
}

function forgetBaseline(known: ReconciledBalance): ReconciledBalance {
  return { ...known, baseline: undefined };
}

function toTexts({ sends }: FollowedSends): Pick<Reconciliation, 'fees' | 'rates'> {
  const rates = [...sends.highestRates].map(([id, rate]) => [id, fromUnits(rate)] as const);
  return { fees: Object.fromEntries(sends.fees), rates: Object.fromEntries(rates) };
}
