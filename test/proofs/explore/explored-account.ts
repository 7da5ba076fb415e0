import type { RedisSnapshot } from '../../world/memory-redis.js';
import { WALL_START } from '../../world/step-process.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { JournalFile } from '../simulation/journal-file.js';
import type { Pieces } from '../simulation/pieces.js';
import { SimGateway } from '../simulation/sim-gateway.js';
import { newPayout, walletOf } from '../simulation/sim-payout.js';
import type { ExploredWorld } from './explored-world.js';
import type { Scenario } from './scenario.js';

/** Commands that a Redis which comes back older may have forgotten. */
const CHANGES = 'acquireLease releaseLease beginSend revertSend finishSend markSendsUnknown object'.split(' ');
const KEPT_SNAPSHOTS = 8;

/** One account: its ledger, with the copies that Redis may come back to, the gateway's book, and the journals. */
export class ExploredAccount {
  readonly ledger: WorldLedger;
  readonly book: SimGateway;
  /** By worker. */
  readonly files: readonly JournalFile[];
  isRolledBack = false;
  readonly #payouts: number;
  #snapshots: RedisSnapshot[] = [];
  /** What was read of the ledger, until something may have changed it. */
  #isSettled: boolean | undefined;

  /** @param number - from 0 */
  constructor(world: ExploredWorld, scenario: Scenario, pieces: Pieces, number: number) {
    const { accounts, payouts, workers, hasOwnJournals } = scenario;
    const prefix = accounts === 1 ? '' : `a${number + 1}.`;
    this.#payouts = payouts;
    let ledgers = 0;
    this.ledger = pieces.makeLedger({
      clock: { wallNow: () => WALL_START + Math.round(world.now) },
      nextLedgerId: () => `${prefix}ledger-${(ledgers += 1)}`,
    });
    this.book = new SimGateway(world);
    const shared = new JournalFile(`journal-${number}`);
    this.files = Array.from({ length: workers }, (_, worker) =>
      hasOwnJournals ? new JournalFile(`${shared.journalId}-${worker}`) : shared,
    );
    for (let payout = 1; payout <= payouts; payout += 1) this.ledger.enqueue(newPayout(`${prefix}p${payout}`));
  }

  fileOf(worker: number): JournalFile {
    const file = this.files[worker];
    if (file === undefined) throw new Error('every worker has a journal');
    return file;
  }

  /** An earlier holder ended in good order, so that the first worker takes the lease at once. */
  async prepare(): Promise<void> {
    const { journalId } = this.fileOf(0);
    const journal = { journalId, host: 'w0', dir: 'w0', sends: 0, token: '', at: 0 };
    const epoch = await this.ledger.acquireLease('earlier', await this.ledger.readSender(), journal, 0);
    if (epoch !== undefined) await this.ledger.releaseLease({ owner: 'earlier', epoch });
  }

  /** Called before a command runs. */
  beforeCommand(name: string): void {
    if (!CHANGES.includes(name)) return;
    this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
  }

  /** Of the ledger, the gateway's book and the journals, without heartbeats. */
  get contents(): string {
    const { lease, sendCount, awaitingAnswer, pausedReason, objectionCount } = this.ledger;
    const payouts = this.ledger
      .payoutIds()
      .map((id) => `${this.ledger.stateOf(id)}${this.ledger.ofPayout(id, 'attempt')}`);
    const holder = `${lease?.owner ?? ''}${lease?.epoch ?? ''}${String(lease?.released)}`;
    const lines = [...new Set(this.files)].map((file) => file.lines.length);
    const others = [sendCount, awaitingAnswer, pausedReason, objectionCount, payouts, this.book.arrivals];
    return [holder, ...others, ...lines].join(' ');
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
      const paid = this.book.paymentTo(walletOf(payoutId));
      const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || txhash === paid;
      if (!isTrue) return `lost: ${payoutId} is ${state} ${txhash ?? ''}, the gateway has ${paid ?? 'no payment'}`;
      if (state === 'queued' || state === 'sending') return `stuck: ${payoutId} is ${state}`;
    }
    if (this.ledger.payouts().length < this.#payouts) return 'lost: a payout is not in the ledger any more';
    return undefined;
  }
}
