import type { RedisSnapshot } from '../../world/memory-redis.js';
import { WALL_START } from '../../world/step-process.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { Pieces } from '../simulation/pieces.js';
import { SimGateway } from '../simulation/sim-gateway.js';
import { newPayout, walletOf } from '../simulation/sim-payout.js';
import type { ExploredWorld } from './explored-world.js';

/** Commands that a Redis which comes back older may have forgotten. */
const CHANGES = new Set([
  'acquireLease',
  'releaseLease',
  'beginSend',
  'revertSend',
  'finishSend',
  'markSendsUnknown',
  'object',
]);
const KEPT_SNAPSHOTS = 8;

export interface ExploredAccountOptions {
  readonly world: ExploredWorld;
  readonly pieces: Pieces;
  /** Before its payouts' names, where there are several accounts. */
  readonly prefix: string;
  readonly payouts: number;
  /** When each payout is enqueued, in ms; at the start where nothing is said. */
  readonly enqueueAt: readonly number[];
}

/** One account: its ledger, with the copies that Redis may come back to, and the gateway's book. */
export class ExploredAccount {
  readonly ledger: WorldLedger;
  readonly gateway: SimGateway;
  isRolledBack = false;
  readonly #payouts: number;
  #snapshots: RedisSnapshot[] = [];
  /** What was read of the ledger, until something may have changed it. */
  #isSettled: boolean | undefined;

  constructor({ world, pieces, prefix, payouts, enqueueAt }: ExploredAccountOptions) {
    this.#payouts = payouts;
    let ledgers = 0;
    this.ledger = pieces.makeLedger({
      clock: { wallNow: () => WALL_START + Math.round(world.now) },
      nextLedgerId: () => `${prefix}ledger-${(ledgers += 1)}`,
    });
    this.gateway = new SimGateway(world);
    for (let number = 0; number < payouts; number += 1) {
      const payout = newPayout(`${prefix}p${number + 1}`);
      const at = enqueueAt[number] ?? 0;
      if (at === 0) this.ledger.enqueue(payout);
      else {
        world.after(at, {
          kind: 'timeout',
          label: `enqueue ${payout.payoutId}`,
          run: () => {
            this.ledger.enqueue(payout);
            this.noteChange();
          },
        });
      }
    }
  }

  /** Called before a command runs. */
  beforeCommand(name: string): void {
    if (!CHANGES.has(name)) return;
    this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
  }

  /** Of the ledger and of the gateway's book, without heartbeats. */
  get contents(): string {
    const { ledger } = this;
    const { lease, sendCount, awaitingAnswer, pausedReason, objectionCount } = ledger;
    const payouts = ledger.payoutIds().map((id) => `${ledger.stateOf(id)}${ledger.ofPayout(id, 'attempt')}`);
    const holder = `${lease?.owner ?? ''}${lease?.epoch ?? ''}${String(lease?.released)}`;
    return [holder, sendCount, awaitingAnswer, pausedReason, objectionCount, payouts, this.gateway.arrivals].join(' ');
  }

  noteChange(): void {
    this.#isSettled = undefined;
  }

  /** @returns whether there is a copy that is so much older */
  rollBack(changes: number): boolean {
    const snapshot = this.#snapshots.at(-changes);
    if (snapshot === undefined) return false;
    this.#snapshots = this.#snapshots.slice(0, -changes);
    this.ledger.restore(snapshot);
    this.isRolledBack = true;
    this.noteChange();
    return true;
  }

  /** Nothing is left to do, or an operator has to do it. */
  get isSettled(): boolean {
    this.#isSettled ??= this.isStopped || this.isDone;
    return this.#isSettled;
  }

  /** Every payout was sent, or may have been. */
  get isDone(): boolean {
    const states = this.ledger.payoutIds().map((payoutId) => this.ledger.stateOf(payoutId));
    return states.length === this.#payouts && states.every((state) => state !== 'queued' && state !== 'sending');
  }

  get isStopped(): boolean {
    return this.ledger.pausedReason !== undefined || this.ledger.isObjectedTo;
  }

  /** Which state says something else than the gateway's book; undefined when all are true. */
  findFalseState(): string | undefined {
    for (const { payoutId, state, txhash } of this.ledger.payouts()) {
      const paid = this.gateway.paymentTo(walletOf(payoutId));
      const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || txhash === paid;
      if (!isTrue) return `lost: ${payoutId} is ${state} ${txhash ?? ''}, the gateway has ${paid ?? 'no payment'}`;
      if (state === 'queued' || state === 'sending') return `stuck: ${payoutId} is ${state}`;
    }
    if (this.ledger.payouts().length < this.#payouts) return 'lost: a payout is not in the ledger any more';
    return undefined;
  }
}
