import { fromUnits, toUnits } from '../../base/decimal.js';
import type { Balance, Currency } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import {
  listDrops,
  readReconciliation,
  reportDrop,
  saveReconciliation,
  type ReconciledBalance,
  type Reconciliation,
} from '../../ledger/reads/reconciliation.js';
import { countPayouts } from '../../ledger/reads/state-events.js';
import type { Logger } from '../../base/logger.js';
import { compareReading } from './compare-reading.js';
import { higher, OpenSends } from './open-sends.js';
import { ratesOf } from './send-sums.js';

interface State {
  readonly sends: OpenSends;
  /** No event was missed since then: wall clock, ms. */
  readonly followedSince: number;
  readonly balances: readonly ReconciledBalance[];
}

/**
 * Compares each balance with what the payouts explain. A send's begin is in the ledger before its first byte. So the
 * events up to after the response name every send that the balance may show.
 *
 * It continues from the last sender's state in Redis, so a restart or takeover hides no drop. Anyone who can write to
 * Redis can hide one.
 */
export class Reconciler {
  readonly #connection: LedgerConnection;
  readonly #settleMs: number;
  readonly #logger: Logger;
  #state: State | undefined;

  /** @param settleMs - after a send's end, the balance may lack its debit for this time, and until the next reading */
  constructor(connection: LedgerConnection, settleMs: number, logger: Logger) {
    this.#connection = connection;
    this.#settleMs = settleMs;
    this.#logger = logger;
  }

  /** Reads and compares the balances. A failed comparison is logged, and the balances are still returned. */
  async compare(read: () => Promise<readonly Balance[]>, currencies: readonly Currency[]): Promise<readonly Balance[]> {
    const state = await this.#attempt(async () => this.#catchUp(currencies));
    const at = this.#connection.clock.wallNow();
    const balances = await read();
    if (state !== undefined) {
      this.#state = await this.#attempt(async () => this.#compare(state, { balances, currencies, at }));
    }
    return balances;
  }

  /** After a failure, all is read again from Redis: counts in memory may not have been written. */
  async #attempt<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#state = undefined;
      const fields = { error: (error as Error).message };
      this.#logger.warn(fields, 'the balance could not be compared with the payouts');
      return undefined;
    }
  }

  async #catchUp(currencies: readonly Currency[]): Promise<State> {
    const connection = this.#connection;
    const known = this.#state ?? (await this.#load(currencies));
    known?.sends.noteRates(ratesOf(currencies));
    if (known !== undefined && (await known.sends.follow(connection))) return known;
    // The sends since then are unknown, so start afresh. Keep only what does not depend on sends.
    const { reconciliation } = await readReconciliation(connection);
    const stored = { fees: {}, rates: {}, balances: [], ...reconciliation };
    const followedSince = connection.clock.wallNow();
    const balances = stored.balances.map((balance) => ({ ...balance, baseline: undefined }));
    // Before the indexes: an event may then be applied twice, but none is missed.
    const { newestEventId } = await countPayouts(connection);
    return this.#open({ ...stored, followedSince, balances }, newestEventId, currencies);
  }

  async #load(currencies: readonly Currency[]): Promise<State | undefined> {
    const { reconciliation } = await readReconciliation(this.#connection);
    return reconciliation && this.#open(reconciliation, reconciliation.followedTo, currencies);
  }

  async #open(
    { fees, rates, balances, followedSince }: Omit<Reconciliation, 'comparedAt' | 'followedTo'>,
    position: string,
    currencies: readonly Currency[],
  ): Promise<State> {
    const highest = new Map(ratesOf(currencies));
    for (const [id, rate] of toEntries(rates)) highest.set(id, higher(highest.get(id), toUnits(rate)) ?? 0n);
    const sends = new OpenSends(position, new Map(toEntries(fees)), highest);
    await sends.addOpen(this.#connection);
    return { sends, followedSince, balances };
  }

  /** @returns undefined if events are missing */
  async #compare(
    { sends, followedSince, balances: before }: State,
    { balances, currencies, at }: { balances: readonly Balance[]; currencies: readonly Currency[]; at: number },
  ): Promise<State | undefined> {
    const [connection, settleMs] = [this.#connection, this.#settleMs];
    if (!(await sends.follow(connection))) return undefined;
    const { acceptedDrops } = await readReconciliation(connection);
    const { compared, drops } = compareReading({
      ...{ balances, before, currencies, at, acceptedUpTo: acceptedDrops?.upTo },
      settled: sends.takeSettled(settleMs, connection.clock.now()),
      ...{ recent: sends.recent, open: sends.open, fees: sends.fees },
      // A send that ended before this time may be debited late.
      hasAllSends: at - followedSince >= settleMs,
    });
    if (drops.length > 0) {
      const reason = `the balance fell by ${listDrops(drops)} more than the payouts explain`;
      this.#logger.error({ reason }, 'unexplained drop of the balance; see `payouts reconcile`');
      // Report before the write: if either fails, the next reading finds the drop again.
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
