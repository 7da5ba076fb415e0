import { fromUnits, toUnits } from '../../../../src/base/decimal.js';
import { silentLogger } from '../../../../src/base/logger.js';
import { RedisUnavailableError } from '../../../../src/base/errors.js';
import type { LedgerConnection } from '../../../../src/ledger/ledger-connection.js';
import { listPayouts } from '../../../../src/ledger/payout-queries.js';
import { PAYOUT_STATES, type PayoutState, TRANSITIONS } from '../../../../src/ledger/states.js';
import type { CurrencySum } from '../../../../src/ledger/reads/statistics.js';
import { StatisticsKeeper } from '../../../../src/worker/statistics/statistics-keeper.js';
import { aPayout } from '../../../ledger/support/a-payout.js';
import type { TestAccount } from '../../../ledger/support/test-account.js';

export const NEVER = new AbortController().signal;

export const openKeeper = (connection: LedgerConnection) => new StatisticsKeeper(connection, silentLogger);

export async function catchUp(keeper: StatisticsKeeper) {
  while (await keeper.step(NEVER));
}

export async function sumPayouts(
  { connection }: TestAccount,
  batch?: string,
): Promise<Record<PayoutState, CurrencySum[]>> {
  const sums: [PayoutState, CurrencySum[]][] = [];
  for (const state of PAYOUT_STATES) {
    const page = await listPayouts(connection, { state, limit: 100_000 });
    const payouts = page.payouts.filter((payout) => batch === undefined || payout.batch === batch);
    const keys = [...new Set(payouts.map(({ paymentId, symbol }) => `${paymentId} ${symbol ?? ''}`))].sort();
    sums.push([
      state,
      keys.map((key) => {
        const [id = '', symbol = ''] = key.split(' ');
        const of = payouts.filter((payout) => `${payout.paymentId} ${payout.symbol ?? ''}` === key);
        const units = of.reduce((sum, { amount }) => sum + toUnits(amount), 0n);
        const sum = { paymentId: Number(id), count: of.length, amount: fromUnits(units) };
        return (symbol === '' ? sum : { ...sum, symbol }) as CurrencySum;
      }),
    ]);
  }
  return Object.fromEntries(sums) as Record<PayoutState, CurrencySum[]>;
}

export class Bustle {
  /** Whether payouts leave final states, as in an adoption. */
  adopts = true;
  readonly #account: TestAccount;
  readonly #states = new Map<string, PayoutState>();
  #seed: number;

  constructor(account: TestAccount, seed: number) {
    this.#account = account;
    this.#seed = seed;
  }

  async run(steps: number) {
    for (let step = 0; step < steps; step += 1) await this.#step();
  }

  #random(below: number) {
    this.#seed = (this.#seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((this.#seed / 2 ** 31) * below);
  }

  async #step() {
    if (this.#states.size < 5 || this.#random(4) === 0) {
      const payoutId = `p-${this.#states.size}`;
      const amount = `${this.#random(1_000)}.${String(1 + this.#random(999_999_999)).padStart(18, '0')}`;
      const symbol = ['USD', undefined][this.#random(2)];
      const batch = ['b', 'c', undefined][this.#random(3)];
      await this.#account.ledger.enqueue([
        aPayout(payoutId, { amount, paymentId: 1 + this.#random(3), symbol, batch }),
      ]);
      this.#states.set(payoutId, 'queued');
      return;
    }
    const payoutId = [...this.#states.keys()][this.#random(this.#states.size)] ?? '';
    const from = this.#states.get(payoutId) ?? 'queued';
    const ways = TRANSITIONS.filter(
      (way) =>
        way.from === from &&
        (way.to !== 'written_off' || way.from === 'unknown') &&
        (!AFTER_ADOPTION.includes(way.from) || (this.adopts && this.#random(8) === 0)),
    );
    const to = ways[this.#random(ways.length)]?.to;
    if (to === undefined) return;
    const gatewayId = to === 'in_progress' ? `hash-${payoutId}` : undefined;
    await this.#account.ledger.change({ payoutId, from, to, ...(gatewayId && { gatewayId }) });
    this.#states.set(payoutId, to);
  }
}

/** States that only an adoption leaves. */
const AFTER_ADOPTION: readonly PayoutState[] = ['cancelled', 'written_off'];

export function intercepted(
  connection: LedgerConnection,
  around: <Result>(work: () => Promise<Result>, name: string) => Promise<Result>,
): LedgerConnection {
  const redis = new Proxy(connection.redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name !== 'pipeline') return async (...args: unknown[]) => around(async () => method(...args), String(name));
      return () => {
        const pipeline = target.pipeline();
        const exec = pipeline.exec.bind(pipeline);
        pipeline.exec = async () => around(async () => exec(), 'pipeline');
        return pipeline;
      };
    },
  });
  const run: LedgerConnection['run'] = async (...args) => around(async () => connection.run(...args), args[0]);
  return { ...connection, redis, run };
}

/** A connection that is lost before or after the effect of its `at`th step, and stays so. */
export function losing(connection: LedgerConnection, at: number, side: 'before' | 'after') {
  let steps = 0;
  const lost = intercepted(connection, async (work) => {
    steps += 1;
    if (steps >= at && side === 'before') throw new RedisUnavailableError('lost');
    const result = await work();
    if (steps >= at) throw new RedisUnavailableError('lost');
    return result;
  });
  return { connection: lost, steps: () => steps };
}
