import { GUARD_MS } from './race-worker.js';
import { IN_FLIGHT_MAX_MS, type RaceGateway } from './race-gateway.js';
import type { RaceLedger } from './race-ledger.js';
import type { Act } from './race-plan.js';
import type { RaceWorld } from './race-world.js';

const BY = { by: 'ann', reason: 'looked it up' };

/** So often a person looks whether there is something to decide. */
const LOOKS = 25;

export interface RacePeopleOptions {
  readonly world: RaceWorld;
  readonly ledger: RaceLedger;
  readonly gateway: RaceGateway;
}

/** The people of an ordering: each act is somebody of their own. */
export class RacePeople {
  readonly #options: RacePeopleOptions;
  /** The payouts of which somebody said, without a look, that they were not sent: maybe a lie. */
  readonly unchecked: string[] = [];

  constructor(options: RacePeopleOptions) {
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
    for (let look = 0; look < LOOKS; look += 1) {
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
    // What is on its way has arrived by then.
    await world.clockOf('ann').sleep(GUARD_MS + IN_FLIGHT_MAX_MS + 1);
    const after = await ledger.read('ann', payoutId);
    if (after?.state !== from || after.attempt !== before?.attempt) return;
    const [txhash] = gateway.paymentsTo(after.addressTo);
    if (txhash === undefined) await ledger.change('ann', { payoutId, from, to: 'queued', ...BY });
    else await ledger.change('ann', { payoutId, from, to: 'in_progress', txhash, ...BY });
  }
}
