import type { WithdrawRequest } from '../../../src/gateway/gateway.js';
import type { World } from './world.js';

/** The gateway's limit, in ms: docs/gateway-api.md#limits. */
const LIMIT_MS = 1_000;

/** What the gateway did with one call. */
export type Verdict =
  { readonly kind: 'paid'; readonly txhash: string } | { readonly kind: 'rejected'; readonly message: string };

/** The simulated gateway: stamps arrivals on true time and keeps the book of what it really paid. */
export class SimGateway {
  readonly #world: Pick<World, 'now' | 'note' | 'fail'>;
  readonly #mayBreak: (promise: 'pace' | 'once') => boolean;
  #lastArrival: { readonly at: number; readonly what: string } | undefined;
  /** By the recipient's wallet, of which each payout has its own. */
  readonly #payments = new Map<string, string>();
  readonly #policy: { paid(request: WithdrawRequest): void } | undefined;
  arrivals = 0;

  /**
   * @param mayBreak - whether a promise is not made in this run
   * @param policy - told of each payment
   */
  constructor(
    world: Pick<World, 'now' | 'note' | 'fail'>,
    mayBreak: (promise: 'pace' | 'once') => boolean = () => false,
    policy?: { paid(request: WithdrawRequest): void },
  ) {
    this.#world = world;
    this.#mayBreak = mayBreak;
    this.#policy = policy;
  }

  /** The transaction that paid to this wallet. */
  paymentTo(wallet: string): string | undefined {
    return this.#payments.get(wallet);
  }

  /** A withdraw arrives. */
  arrive(request: WithdrawRequest, what: string, rejects: boolean): Verdict {
    const { addressTo } = request;
    const { now } = this.#world;
    this.#world.note(() => `gateway: ${what} arrives, ${rejects ? 'rejected' : 'PAID'}`);
    this.arrivals += 1;
    const last = this.#lastArrival;
    if (last !== undefined && now - last.at < LIMIT_MS - 1e-6 && !this.#mayBreak('pace')) {
      this.#world.fail(`too fast: ${what} arrived ${(now - last.at).toFixed(3)} ms after ${last.what}`);
    }
    this.#lastArrival = { at: now, what };
    if (rejects) return { kind: 'rejected', message: 'not enough balance' };
    if (this.#payments.has(addressTo) && !this.#mayBreak('once')) this.#world.fail(`twice: ${what} was paid before`);
    this.#policy?.paid(request);
    const txhash = `tx-${this.arrivals}`;
    this.#payments.set(addressTo, txhash);
    return { kind: 'paid', txhash };
  }
}
