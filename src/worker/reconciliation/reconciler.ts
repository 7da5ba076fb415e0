import { fromUnits, toUnits } from '../../base/decimal.js';
import type { Balance } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import {
  listDrops,
  readReconciliation,
  reportDrop,
  saveReconciliation,
  type ReconciledBalance,
  type Reconciliation,
} from '../../ledger/reconciliation.js';
import { countPayouts } from '../../ledger/state-events.js';
import type { Logger } from '../../base/logger.js';
import { compareReading } from './compare-reading.js';
import { higher, OpenSends } from './open-sends.js';
import { currentRates, type Market } from './send-sums.js';

interface ReconcilerOptions {
  readonly connection: LedgerConnection;
  /** After a send ended, the balance may lack its debit for so long, and until the next reading, in ms. */
  readonly settleMs: number;
  readonly logger: Logger;
}

interface State {
  readonly sends: OpenSends;
  /** Since when no event was missed: wall clock, ms. */
  readonly followedSince: number;
  /** By the last comparison. */
  readonly balances: readonly ReconciledBalance[];
}

/**
 * Compares each balance with what the payouts explain. A send's begin is in the ledger before its first byte is written, so
 * the events up to after the response name every send that the balance may show: no send races with a reading.
 *
 * It continues where the last sender was, by what Redis has: a restart or a takeover hides nothing that is taken meanwhile.
 * Anyone who can write to Redis can change it, and hide a drop.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  #state: State | undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /**
   * Reads the balances, and compares them. If that fails, it is logged, and they are returned all the same.
   * @throws what `read` throws
   */
  async watch(read: () => Promise<readonly Balance[]>, market: Market): Promise<readonly Balance[]> {
    const state = await this.#attempt(async () => this.#catchUp(market));
    const at = this.#options.connection.clock.wallNow();
    const balances = await read();
    if (state !== undefined) {
      this.#state = await this.#attempt(async () => this.#compare(state, { balances, market, at }));
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
    const known = this.#state ?? (await this.#load(market));
    known?.sends.noteRates(currentRates(market));
    if (known !== undefined && (await known.sends.follow(connection))) return known;
    // What was sent since is not known: all begins here. Only what does not depend on the sends is kept.
    const { reconciliation } = await readReconciliation(connection);
    const stored = { fees: {}, rates: {}, balances: [], ...reconciliation };
    const followedSince = connection.clock.wallNow();
    const balances = stored.balances.map((balance) => ({ ...balance, baseline: undefined }));
    // Before the indexes are read: of what changes meanwhile the event is applied a second time, and none is left out.
    const { newestEventId } = await countPayouts(connection);
    return this.#open({ ...stored, followedSince, balances }, newestEventId, market);
  }

  async #load(market: Market): Promise<State | undefined> {
    const { reconciliation } = await readReconciliation(this.#options.connection);
    const { followedTo } = reconciliation ?? {};
    return reconciliation && followedTo !== undefined ? this.#open(reconciliation, followedTo, market) : undefined;
  }

  async #open(
    { fees, rates, balances, followedSince }: Omit<Reconciliation, 'comparedAt' | 'followedTo'>,
    position: string,
    market: Market,
  ): Promise<State> {
    const highest = new Map(currentRates(market));
    for (const [id, rate] of toEntries(rates)) highest.set(id, higher(highest.get(id), toUnits(rate)) ?? 0n);
    const sends = new OpenSends(position, new Map(toEntries(fees)), highest);
    await sends.addOpen(this.#options.connection);
    return { sends, followedSince, balances };
  }

  /** @returns undefined if events are missing */
  async #compare(
    { sends, followedSince, balances: before }: State,
    { balances, market, at }: { balances: readonly Balance[]; market: Market; at: number },
  ): Promise<State | undefined> {
    const { connection, settleMs, logger } = this.#options;
    if (!(await sends.follow(connection))) return undefined;
    const { acceptedDrops } = await readReconciliation(connection);
    const { compared, drops } = compareReading({
      ...{ balances, before, market, at, sends, settleMs, acceptedUpTo: acceptedDrops?.upTo },
      // A send that ended before events were followed may be debited late.
      hasAllSends: at - followedSince >= settleMs,
    });
    if (drops.length > 0) {
      const reason = `the balance fell by ${listDrops(drops)} more than the payouts explain`;
      logger.error({ reason }, 'unexplained drop of the balance; see `payouts reconcile`');
      // Before it is written that it was reported: if one of these fails, the drop is found again at the next reading.
      await reportDrop(connection, reason);
    }
    const since = Math.min(followedSince, at);
    const rates = [...sends.highestRates].map(([id, rate]) => [id, fromUnits(rate)] as const);
    await saveReconciliation(connection, {
      ...{ comparedAt: at, followedSince: since, followedTo: sends.position, balances: compared },
      ...{ fees: Object.fromEntries(sends.fees), rates: Object.fromEntries(rates) },
    });
    return { sends, followedSince: since, balances: compared };
  }
}

function toEntries(stored: Readonly<Record<number, string>>): (readonly [id: number, decimal: string])[] {
  return Object.entries(stored).map(([id, decimal]) => [Number(id), decimal] as const);
}
