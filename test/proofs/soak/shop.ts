import type { Redis } from 'ioredis';
import { LedgerKeys } from '../../../src/ledger/keys.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { systemClock } from '../../../src/base/clock.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { addressOf, amountOf, PLATFORM_ID } from '../chaos/account.js';
import { passes } from './mishaps.js';

const BACKLOG = 60;
const CHECK_EVERY_MS = 10_000;
const OLD_EVERY_MS = 10 * 60_000;
const OLD_AT_ONCE = 500;
const THREE_DAYS_MS = 3 * 86_400_000;

/** The application: always has some payouts waiting, and old ones for retention to remove. */
export class Shop {
  readonly payoutIds: string[] = [];
  readonly #producer: PayoutProducer;
  readonly #redisUrl: string;

  constructor(redisUrl: string) {
    this.#redisUrl = redisUrl;
    this.#producer = new PayoutProducer({ redisUrl, platformId: PLATFORM_ID });
  }

  /** Keeps the queue filled until the signal is aborted. Redis may be away meanwhile: asking again is safe. */
  async keepOrdering(end: AbortSignal): Promise<void> {
    do {
      try {
        const { queued } = await this.#producer.stats();
        if (queued < BACKLOG / 2) await this.#order(BACKLOG - queued);
      } catch {
        continue;
      }
    } while (await passes(CHECK_EVERY_MS, end));
  }

  async #order(count: number): Promise<void> {
    const first = this.payoutIds.length + 1;
    const payoutIds = Array.from({ length: count }, (_, index) => `P-${first + index}`);
    const inputs = payoutIds.map((payoutId) => ({
      ...{ payoutId, paymentId: 1, amount: amountOf(payoutId), addressTo: addressOf(payoutId) },
    }));
    await this.#producer.enqueueMany(inputs);
    this.payoutIds.push(...payoutIds);
  }

  /** Payouts that were cancelled three days ago: what retention finds. @returns how many */
  async keepAgeing(end: AbortSignal): Promise<number> {
    let made = 0;
    do {
      try {
        await this.#makeOld(made);
        made += OLD_AT_ONCE;
      } catch {
        continue;
      }
    } while (await passes(OLD_EVERY_MS, end));
    return made;
  }

  async #makeOld(first: number): Promise<void> {
    const clock = { ...systemClock, wallNow: () => Date.now() - THREE_DAYS_MS };
    const account = openAccount({ redisUrl: this.#redisUrl, platformId: PLATFORM_ID, clock });
    try {
      const payouts = Array.from({ length: OLD_AT_ONCE }, (_, index) => ({ payoutId: `old-${first + index}` }));
      // Not sent meanwhile: it may be sent only long after the run.
      const notBefore = '2099-01-01T00:00:00.000Z';
      await account.ledger.enqueue(
        payouts.map((each) => ({ ...each, paymentId: 1, amount: '1', addressTo: 'old', notBefore })),
      );
      const actor = { by: 'shop', reason: 'not needed any more' };
      await account.ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...actor });
    } finally {
      await account.close();
    }
  }

  /** How many payouts have not come to their end. @throws RedisUnavailableError */
  async countOpen(): Promise<number> {
    const { queued, sending, in_progress: inProgress } = await this.#producer.stats();
    return queued + sending + inProgress;
  }

  /** Old payouts that retention has yet to remove. */
  async countOld(client: Redis): Promise<number> {
    return client.zcard(new LedgerKeys(PLATFORM_ID).state('cancelled'));
  }

  async readPayouts(): Promise<Map<string, Payout | undefined>> {
    const payouts = new Map<string, Payout | undefined>();
    for (const payoutId of this.payoutIds) payouts.set(payoutId, await this.#producer.get(payoutId));
    return payouts;
  }

  async close(): Promise<void> {
    await this.#producer.close();
  }
}
