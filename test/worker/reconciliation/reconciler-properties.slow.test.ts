import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { silentLogger } from '../../../src/base/logger.js';
import type { Balance } from '../../../src/ledger/reads/gateway-facts.js';
import { readReconciliation, summariseDrops } from '../../../src/ledger/reads/reconciliation.js';
import { Reconciler } from '../../../src/worker/reconciliation/reconciler.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';

/** What the comparison of balances promises of any history: an honest gateway raises no alarm, and a large theft does. */

const SETTLE_MS = 60_000;
const CURRENCIES = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' }];
/** In cents, like all amounts here. */
const START = 5_000_000;
/** A thousandth of a balance is not reported. */
const TOLERANCE = START / 1_000;

interface Send {
  readonly payoutId: string;
  readonly amount: number;
  readonly fee: number;
  /** Whether the gateway pays it, whatever becomes of the payout here. */
  readonly isPaid: boolean;
  isDebited: boolean;
  endedAt: number | undefined;
}

const ENDS = ['completed', 'failed', 'refunded', 'rejected', 'written_off'] as const;
const index = fc.nat({ max: 20 });
const small = fc.record({
  kind: fc.constantFrom('send', 'debit', 'end', 'deposit'),
  amount: fc.integer({ min: 1, max: 100_000 }),
  /** Of the largest fee that the comparison allows for. */
  feePart: fc.double({ min: 0, max: 1, noNaN: true }),
  isPaid: fc.boolean(),
  end: fc.constantFrom(...ENDS),
  index,
});
const step = fc.oneof(
  { weight: 6, arbitrary: small },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('read' as const), during: fc.array(small, { maxLength: 2 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 2 * SETTLE_MS }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);
type Small = typeof small extends fc.Arbitrary<infer Value> ? Value : never;
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const decimal = (cents: number) => (cents / 100).toFixed(2);

/** An account, its ledger in Redis, and a gateway that debits what it pays until `SETTLE_MS` after the payout's end. */
class Surroundings {
  readonly #account = openTestAccount();
  #reconciler = this.#open();
  #balance = START;
  #largestFee = 2_000;
  /** The most that sends and deposits can hide of a theft. */
  hidden = 0;
  readonly #sends: Send[] = [];

  #open() {
    const { connection, clock } = this.#account;
    // Both clocks of a test move together.
    const both = { ...clock, now: () => clock.wallNow() };
    return new Reconciler({ ...connection, clock: both }, SETTLE_MS, silentLogger);
  }

  /** The first fee is known, and the account is compared. */
  async start() {
    await this.read([]);
    await this.#send({ amount: 100, feePart: 0, isPaid: true }, 2_000);
    await this.settle();
  }

  async take(step: Step) {
    if (step.kind === 'read') await this.read(step.during);
    else if (step.kind === 'wait') this.#wait(step.ms);
    else if (step.kind === 'restart') this.#reconciler = this.#open();
    else await this.#change(step);
  }

  async read(during: readonly Small[]) {
    const ask = async (): Promise<Balance[]> => {
      const stated = decimal(this.#balance);
      for (const each of during) await this.#change(each);
      return [{ paymentId: 6, symbol: undefined, amount: stated }];
    };
    await this.#reconciler.compare(ask, CURRENCIES);
  }

  steal(amount: number) {
    this.#balance -= amount;
  }

  /** Every send ends, is debited, and is seen so by two readings. */
  async settle() {
    for (const send of this.#sends.filter(({ endedAt }) => endedAt === undefined))
      await this.#end(send, send.isPaid ? 'completed' : 'failed');
    await this.read([]);
    for (let time = 0; time < 3; time += 1) {
      this.#wait(2 * SETTLE_MS);
      await this.read([]);
    }
  }

  /** In cents. */
  async reported() {
    const drops = summariseDrops(await readReconciliation(this.#account.connection), CURRENCIES);
    return drops.reduce((sum, { amount }) => sum + Number(amount) * 100, 0);
  }

  async close() {
    await this.#account.close();
  }

  async #change({ kind, index: at, ...given }: Small) {
    if (kind === 'send') return this.#send(given);
    if (kind === 'deposit') {
      this.#balance += given.amount;
      this.hidden += given.amount;
      return;
    }
    const matching = this.#sends.filter((send) =>
      kind === 'debit' ? send.isPaid && !send.isDebited : send.endedAt === undefined,
    );
    const send = matching[at % matching.length];
    if (send === undefined) return;
    if (kind === 'debit') this.#debit(send);
    else await this.#end(send, given.end);
  }

  async #send({ amount, feePart, isPaid }: Pick<Small, 'amount' | 'feePart' | 'isPaid'>, given?: number) {
    const payoutId = `p-${this.#sends.length}`;
    const most = 2 * this.#largestFee + Math.floor(amount / 100);
    const fee = given ?? Math.floor(feePart * most);
    this.hidden += amount + most;
    await this.#account.ledger.enqueue([aPayout(payoutId, { amount: decimal(amount), paymentId: 6 })]);
    await this.#account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
    this.#sends.push({ payoutId, amount, fee, isPaid, isDebited: false, endedAt: undefined });
  }

  #debit(send: Send) {
    if (!send.isDebited) this.#balance -= send.amount + send.fee;
    send.isDebited = true;
  }

  async #end(send: Send, end: (typeof ENDS)[number]) {
    const { payoutId, isPaid, fee } = send;
    const { ledger, clock } = this.#account;
    const to = {
      refunded: 'failed',
      completed: isPaid ? 'completed' : 'failed',
      rejected: isPaid ? 'failed' : 'rejected',
    };
    const state = end === 'failed' || end === 'written_off' ? end : (to[end] as 'completed' | 'failed' | 'rejected');
    if (state === 'rejected') await ledger.change({ payoutId, from: 'sending', to: 'rejected' });
    else if (state === 'written_off') {
      await ledger.change({ payoutId, from: 'sending', to: 'unknown' });
      await ledger.change({ payoutId, from: 'unknown', to: 'written_off' });
    } else {
      await ledger.change({ payoutId, from: 'sending', to: 'in_progress', gatewayId: `tx-${payoutId}` });
      const ended = { payoutId, from: 'in_progress', to: state } as const;
      await ledger.change(state === 'completed' ? { ...ended, fee: decimal(fee) } : ended);
    }
    if (state === 'completed') this.#largestFee = Math.max(this.#largestFee, fee);
    if (end === 'refunded' && send.isDebited) this.#balance += send.amount;
    send.endedAt = clock.wallNow();
  }

  #wait(ms: number) {
    const { clock } = this.#account;
    for (const send of this.#sends)
      if (send.isPaid && send.endedAt !== undefined && send.endedAt + SETTLE_MS <= clock.wallNow() + ms)
        this.#debit(send);
    clock.advance(ms);
  }
}

async function inSurroundings(steps: readonly Step[], check: (each: Surroundings) => Promise<void>) {
  const each = new Surroundings();
  try {
    await each.start();
    for (const step of steps) await each.take(step);
    await check(each);
  } finally {
    await each.close();
  }
}

const steps = fc.array(step, { maxLength: 25 });

it('whatever is sent, ended, debited late, refunded or deposited, an honest gateway raises no alarm', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (taken) =>
      inSurroundings(taken, async (each) => {
        await each.settle();
        expect(await each.reported()).toBe(0);
      }),
    ),
    { numRuns: 150 },
  );
}, 600_000);

it('of a theft, all is reported but what sends, deposits and the tolerance can explain, whenever it comes', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 100, max: 1_000_000 }), async (taken, more) =>
      inSurroundings(taken, async (each) => {
        const explained = each.hidden + TOLERANCE + 1;
        each.steal(explained + more);
        await each.settle();
        expect(await each.reported()).toBeGreaterThanOrEqual(more);
      }),
    ),
    { numRuns: 100 },
  );
}, 600_000);
