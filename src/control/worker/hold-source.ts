import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import { findFault, type Payout } from '../../ledger/payout.js';

/** Where the worker finds what the policy holds, or may hold. */
export type HeldPayouts = Pick<HoldSource, 'read' | 'held' | 'queued' | 'marked' | 'unmark'>;

/** Payouts, and where the next page begins. */
export interface HeldPage {
  readonly payouts: readonly Payout[];
  readonly next: string | undefined;
}

/** Reads what the policy holds, or may hold, from Redis. What cannot be read, or never be sent, is left out: the sender holds it. */
export class HoldSource {
  readonly #connection: LedgerConnection;

  constructor(connection: LedgerConnection) {
    this.#connection = connection;
  }

  /** One payout as it is now. @throws RedisUnavailableError */
  async read(payoutId: string): Promise<Payout | undefined> {
    return (await this.#readAll([payoutId]))[0];
  }

  /**
   * A page of what is held, in the order in which it was held.
   * @param after - `next` of the page before; undefined for the first
   * @returns `next`: undefined at the end
   * @throws RedisUnavailableError
   */
  async held(after: string | undefined, limit: number): Promise<HeldPage> {
    const options = { state: 'held', limit, ...(after !== undefined && { cursor: after }) } as const;
    const { payoutIds, next } = await listPayoutIds(this.#connection, options);
    return { payouts: await this.#readAll(payoutIds), next };
  }

  /**
   * Payouts that came into the queue after a place in it.
   * @param after - `next` of the last call; undefined for the front
   * @returns `next`: where the next call begins
   * @throws RedisUnavailableError
   */
  async queued(after: string | undefined, limit: number): Promise<HeldPage> {
    const { redis, keys } = this.#connection;
    const from = after === undefined ? '-inf' : `(${after}`;
    const found = await ask(
      redis.zrange(keys.state('queued'), from, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES'),
    );
    const payouts = await this.#readAll(found.filter((_, index) => index % 2 === 0));
    return { payouts, next: found.at(-1) ?? after };
  }

  /** Held payouts of which somebody said something since. @throws RedisUnavailableError */
  async marked(limit: number): Promise<string[]> {
    const { redis, keys } = this.#connection;
    return ask(redis.srandmember(keys.recheck, limit));
  }

  /** @throws RedisUnavailableError */
  async unmark(payoutIds: readonly string[]): Promise<void> {
    const { redis, keys } = this.#connection;
    if (payoutIds.length > 0) await ask(redis.srem(keys.recheck, ...payoutIds));
  }

  async #readAll(payoutIds: readonly string[]): Promise<readonly Payout[]> {
    const payouts = await readReadable(this.#connection, payoutIds, () => undefined);
    // No rule can judge an amount that is none.
    return payouts.filter((payout) => findFault(payout) === undefined);
  }
}
