import { truthfulResolution } from '../../doubles/truthful-resolution.js';
import { GUARD_MS } from './race-worker.js';
import { IN_FLIGHT_MAX_MS, type RaceGateway } from './race-gateway.js';
import type { RaceLedger } from './race-ledger.js';
import type { Act } from './race-plan.js';
import type { RaceWorld } from './race-world.js';

const BY = { by: 'ann', reason: 'looked it up' };

/** How often an operator checks whether there is something to decide. */
const CHECKS = 25;

export interface RaceOperatorsOptions {
  readonly world: RaceWorld;
  readonly ledger: RaceLedger;
  readonly gateway: RaceGateway;
}

/** The operators of an ordering: each act has its own. */
export class RaceOperators {
  readonly #options: RaceOperatorsOptions;
  /** The payouts that an operator stated as not sent without a check: maybe falsely. */
  readonly unchecked: string[] = [];

  constructor(options: RaceOperatorsOptions) {
    this.#options = options;
  }

  async perform(act: Act): Promise<void> {
    const { world, ledger } = this.#options;
    for (let turn = 0; turn < act.after; turn += 1) await world.turn('time passes');
    switch (act.kind) {
      case 'cancel':
        await ledger.change('bob', { payoutId: act.payoutId, from: 'queued', to: 'cancelled', ...BY });
        return;
      case 'retry':
        if (await this.#isSeen(act.payoutId, 'rejected')) {
          await ledger.change('bob', { payoutId: act.payoutId, from: 'rejected', to: 'queued', ...BY });
        }
        return;
      case 'resolve':
        if (await this.#isSeen(act.payoutId, 'unknown')) await this.#resolve(act.payoutId, act.as);
        return;
      case 'pause':
        await ledger.pause();
        return;
      case 'resume':
        await ledger.resume();
    }
  }

  async #isSeen(payoutId: string, state: 'rejected' | 'unknown'): Promise<boolean> {
    for (let check = 0; check < CHECKS; check += 1) {
      if ((await this.#options.ledger.read('ann', payoutId))?.state === state) return true;
    }
    return false;
  }

  async #resolve(payoutId: string, as: Extract<Act, { kind: 'resolve' }>['as']): Promise<void> {
    const { world, ledger, gateway } = this.#options;
    const from = 'unknown';
    if (as === 'written off') await ledger.change('ann', { payoutId, from, to: 'cancelled', ...BY });
    if (as === 'not sent, unchecked') {
      const outcome = await ledger.change('ann', { payoutId, from, to: 'queued', ...BY });
      if (outcome === 'done') this.unchecked.push(payoutId);
    }
    if (as !== 'the truth') return;
    const before = await ledger.read('ann', payoutId);
    // A request in flight has arrived by then.
    await world.clockOf('ann').sleep(GUARD_MS + IN_FLIGHT_MAX_MS + 1);
    const after = await ledger.read('ann', payoutId);
    if (after?.state !== from || after.attempt !== before?.attempt) return;
    const [txhash] = gateway.paymentsTo(after.addressTo);
    await ledger.change('ann', { payoutId, from, ...truthfulResolution(txhash), ...BY });
  }
}
