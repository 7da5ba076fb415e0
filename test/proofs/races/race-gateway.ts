import type {
  PaymentStatus,
  WithdrawConnection,
  WithdrawGateway,
  WithdrawOutcome,
  WithdrawRequest,
} from '../../../src/gateway/gateway.js';
import type { RacePlan, Verdict } from './race-plan.js';
import type { RaceWorld } from './race-world.js';

export const IN_FLIGHT_MAX_MS = 500;

/** The gateway: it pays whatever arrives, and its book shows what was really paid. */
export class RaceGateway {
  readonly #world: RaceWorld;
  readonly #plan: RacePlan;
  /** By wallet, of which each payout has its own: the transactions. */
  readonly #payments = new Map<string, string[]>();
  readonly #asked = new Map<string, number>();
  #writes = 0;

  constructor(world: RaceWorld, plan: RacePlan) {
    this.#world = world;
    this.#plan = plan;
  }

  get paid(): number {
    return [...this.#payments.values()].flat().length;
  }

  paymentsTo(wallet: string): readonly string[] {
    return this.#payments.get(wallet) ?? [];
  }

  /** A worker's way to it. */
  linkOf(name: string): WithdrawGateway {
    return {
      openConnection: async () => {
        await this.#world.turn(`${name} connects`);
        return this.#connection(name);
      },
      probe: async () => this.#world.turn(`${name} probes`),
    };
  }

  async getStatus(txhash: string): Promise<PaymentStatus> {
    const asked = this.#asked.get(txhash) ?? 0;
    this.#asked.set(txhash, asked + 1);
    const kind = (['pending', 'paid', 'failed'] as const)[this.#plan.approvals[asked] ?? 1];
    await this.#world.turn(`status of ${txhash}: ${kind}`);
    return { kind, fee: '0.1' };
  }

  #connection(name: string): WithdrawConnection {
    return {
      usable: true,
      withdraw: async (request, { mayWrite }) => {
        await this.#world.turn(`${name} is about to write`);
        if (!mayWrite()) return { kind: 'not_sent', reason: 'not allowed any more' };
        this.#world.note(`${name} WRITES ${request.addressTo}`);
        return this.#carry(name, request, this.#world.now);
      },
      close: () => undefined,
    };
  }

  async #carry(name: string, { addressTo }: WithdrawRequest, writtenAt: number): Promise<WithdrawOutcome> {
    const verdict = this.#plan.verdicts[this.#writes] ?? 'paid';
    this.#writes += 1;
    const arrived = this.#arrive(addressTo, verdict, writtenAt);
    // Where no response comes, that is found out before the request arrives, or after.
    const response = verdict === 'paid' || verdict === 'rejected' ? await arrived : undefined;
    await this.#world.turn(`${name} hears of ${addressTo}`);
    return response ?? { kind: 'unknown', reason: verdict, durationMs: 1 };
  }

  /** By the assumption on which everything rests, a request arrives within a known time, or never. */
  async #arrive(addressTo: string, verdict: Verdict, writtenAt: number): Promise<WithdrawOutcome | undefined> {
    await this.#world.turn(`${addressTo} arrives`);
    if (verdict === 'never arrives' || this.#world.now - writtenAt > IN_FLIGHT_MAX_MS) return undefined;
    this.#world.note(`gateway: ${addressTo} arrives: ${verdict}`);
    if (verdict === 'rejected') return { kind: 'rejected', message: 'not enough balance', durationMs: 1 };
    const txhash = `tx-${this.paid + 1}`;
    this.#payments.set(addressTo, [...this.paymentsTo(addressTo), txhash]);
    return { kind: 'accepted', txhash, durationMs: 1 };
  }
}
