import type { LedgerKeys } from '../../../ledger/keys.js';
import { PAYOUT_STATES, type PayoutState } from '../../../ledger/states.js';
import { openAccount, type AccountAccess } from '../../../queues/open-account.js';
import type { RedisClient } from '../../../redis.js';

/** What stands in Redis for as long as the account is paused. */
const PAUSE_FIELDS = ['pausedReason', 'pausedBy', 'pausedAt', 'rejectionsInARow', 'unknownsInARow', 'untold'];

/** Somebody who can write to Redis, and nothing else: he has no key, and is not on the worker's host. */
export class Attacker {
  readonly #account: AccountAccess;
  readonly #redis: RedisClient;
  readonly #keys: LedgerKeys;
  #jobs = 0;

  constructor(redisUrl: string, platformId: number) {
    this.#account = openAccount({ redisUrl, platformId, readOnly: true });
    ({ redis: this.#redis, keys: this.#keys } = this.#account.ledger.connection);
  }

  /** Alters fields of a payout's record. */
  async alter(payoutId: string, fields: Readonly<Record<string, string>>): Promise<void> {
    await this.#redis.hset(this.#keys.payout(payoutId), fields);
  }

  /** Puts in a payout of his own, with fields as the shop's payouts have them. */
  async invent(payoutId: string, fields: Readonly<Record<string, string>>): Promise<void> {
    await this.alter(payoutId, { attempt: '0', n: '1', h0: `${Date.now()}\tqueued`, ...fields });
    await this.enqueue(payoutId);
  }

  async copy(payoutId: string, copyId: string): Promise<void> {
    await this.invent(copyId, await this.#redis.hgetall(this.#keys.payout(payoutId)));
  }

  /** Makes the record, the indexes and the queue say that a payout waits to be sent. */
  async enqueue(payoutId: string): Promise<void> {
    await this.showAs(payoutId, 'queued');
    this.#jobs += 1;
    await this.#account.queues.withdraw.add(
      'withdraw',
      { payoutId, paymentId: 0, amount: '', addressTo: '' },
      { jobId: `attacker~${this.#jobs}` },
    );
  }

  /** Makes the record and the indexes say that a payout is in a state. */
  async showAs(payoutId: string, state: PayoutState): Promise<void> {
    const place = await this.#redis.hincrby(this.#keys.ledger, 'seq', 1);
    const pipeline = this.#redis.multi().hset(this.#keys.payout(payoutId), { state });
    for (const each of PAYOUT_STATES) pipeline.zrem(this.#keys.state(each), payoutId);
    await pipeline.zadd(this.#keys.state(state), place, payoutId).exec();
  }

  async liftPause(): Promise<void> {
    await this.#redis.hdel(this.#keys.ledger, ...PAUSE_FIELDS);
  }

  async close(): Promise<void> {
    await this.#account.close();
  }
}
