import type { Payout } from '../../src/ledger/payout.js';
import type { MemoryLedger } from './memory-ledger.js';
import type { Plan } from './plan.js';
import type { SimGateway } from './sim-gateway.js';
import type { JournalFile } from './sim-journal.js';
import type { SimRedis } from './sim-redis.js';
import { newPayout, walletOf } from './sim-payout.js';
import type { World } from './world.js';

/** A host whose workers refuse the ledger, as a person sees it. */
export interface RefusingHost {
  readonly file: JournalFile;
}

export interface SimPeopleOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly redis: SimRedis;
  readonly gateway: SimGateway;
  /** The hosts of which a living worker refuses to send. */
  readonly refusing: () => readonly RefusingHost[];
}

const BY = { by: 'ann', reason: 'looked it up' };

/**
 * The application, which asks for its payouts again until the ledger has them, and the people, who see what the gateway
 * really did and tell the truth about it.
 */
export class SimPeople {
  readonly #options: SimPeopleOptions;
  readonly #wanted: string[] = [];
  /** Since when (true time) a payout is seen as unknown, and after which attempt. */
  readonly #unknownSince = new Map<string, { readonly attempt: number; readonly at: number }>();
  readonly #retries = new Map<string, number>();

  constructor(options: SimPeopleOptions) {
    this.#options = options;
    const { world, plan } = options;
    for (let number = 1; number <= plan.payouts; number += 1) {
      world.after(world.random.between(0, plan.enqueueWithinMs), () => {
        this.#wanted.push(`p${number}`);
        this.#enqueue();
      });
    }
    this.#lookAgain();
  }

  get #ledger(): MemoryLedger {
    return this.#options.redis.ledger;
  }

  /** Whether every payout that was to be paid is known, is neither to be sent nor being sent, and nobody objects to the ledger. */
  get isDrained(): boolean {
    if (this.#wanted.length < this.#options.plan.payouts || this.#options.refusing().length > 0) return false;
    const states = new Map(this.#ledger.payouts().map(({ payoutId, state }) => [payoutId, state]));
    return this.#wanted.every((payoutId) => !['queued', 'sending', undefined].includes(states.get(payoutId)));
  }

  #lookAgain(): void {
    const { world } = this.#options;
    world.after(world.random.between(1_000, 10_000), () => {
      if (!this.#options.redis.refuses) {
        this.#enqueue();
        this.#adopt();
        this.#decide();
      }
      this.#lookAgain();
    });
  }

  #enqueue(): void {
    if (this.#options.redis.refuses) return;
    for (const payoutId of this.#wanted) this.#ledger.enqueue(newPayout(payoutId));
  }

  /** What `payouts adopt-ledger` does on each host whose worker refuses. */
  #adopt(): void {
    const { world, redis } = this.#options;
    for (const { file } of this.#options.refusing()) {
      if (world.fault(0.5)) continue;
      const { ledger, sends } = file.read();
      if (ledger === undefined) continue;
      for (const send of sends) {
        this.#ledger.adoptSend(
          { ...send, payout: newPayout(send.payoutId) },
          BY.by,
          'the ledger had forgotten the send',
        );
      }
      const raised = this.#ledger.adoptLedger(ledger);
      file.lines.push({ entry: { ledgerId: redis.ledgerId, ...raised }, isOnDisk: true });
      world.note(() => `people: ledger ${redis.ledgerId} adopted, epoch ${raised.epoch}, sends ${raised.sends}`);
    }
  }

  #decide(): void {
    const { world, plan } = this.#options;
    if (world.random.chance(world.faultsOn ? 0.5 : 1) && this.#ledger.resume()) world.note(() => 'people: resumed');
    for (const payout of this.#ledger.payouts()) {
      if (payout.state !== 'unknown') this.#unknownSince.delete(payout.payoutId);
      else if (this.#unknownSince.get(payout.payoutId)?.attempt !== payout.attempt) {
        this.#unknownSince.set(payout.payoutId, { attempt: payout.attempt, at: world.now });
      }
      if (payout.state === 'unknown' && world.fault(0.7)) this.#resolve(payout);
      if (payout.state === 'rejected' && world.fault(0.5)) this.#retry(payout);
      if (payout.state === 'queued' && plan.personCancels && world.fault(0.05)) this.#change(payout, 'cancelled');
    }
    if (world.fault(0.02)) this.#ledger.pause('ann wants it');
  }

  #resolve(payout: Payout): void {
    const { world, gateway, plan } = this.#options;
    const { guardMs, inFlightMaxMs } = plan.settings;
    const txhash = gateway.paymentTo(walletOf(payout.payoutId));
    if (txhash !== undefined) this.#change(payout, 'in_progress', txhash);
    // That it was not paid can only be stated once nothing can be on its way any more.
    const since = this.#unknownSince.get(payout.payoutId)?.at ?? world.now;
    if (txhash === undefined && world.now - since > 1.002 * (guardMs + inFlightMaxMs)) this.#change(payout, 'queued');
  }

  #retry(payout: Payout): void {
    const retries = this.#retries.get(payout.payoutId) ?? 0;
    if (retries < 2) this.#change(payout, 'queued');
    this.#retries.set(payout.payoutId, retries + 1);
  }

  #change({ payoutId, state }: Payout, to: 'in_progress' | 'queued' | 'cancelled', txhash?: string): void {
    this.#options.world.note(() => `people: ${payoutId} ${state} → ${to}`);
    this.#ledger.change({ payoutId, from: state, to, ...BY, ...(txhash === undefined ? {} : { txhash }) });
  }
}
