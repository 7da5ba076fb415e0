import { ActionLog } from '../../world/action-log.js';
import { describeStep, type PendingStep, type Progress, World } from '../../world/world.js';

/** The next step is what `pick` says. Time passes only as far as the steps that are picked need it. */
export class WalkedWorld extends World {
  pick: (waiting: readonly PendingStep[]) => PendingStep | undefined = () => undefined;

  /** The last is due first. */
  get waiting(): readonly PendingStep[] {
    const isOver = ({ isGone, isDelivered, process }: PendingStep) =>
      isGone || (isDelivered === true && process?.isDead === true);
    return this.pending.filter((step) => !isOver(step));
  }

  /** A step that will never come. */
  drop(step: PendingStep) {
    this.note(() => `DROPPED: ${describeStep(step)}`);
    step.isGone = true;
  }

  protected override next(): Progress {
    const step = this.pick(this.waiting);
    if (step === undefined) return 'over';
    this.pending.splice(this.pending.indexOf(step), 1);
    this.now = Math.max(this.now, step.at);
    this.count += 1;
    this.carryOut(step);
    return 'ran';
  }
}

/** What a process did: an action of a send, or a command that Redis carried out. */
export interface Seen {
  readonly kind: string;
  readonly process: string;
  readonly payoutId?: string | undefined;
}

/** The log of a run, which also says which process did what. */
export class WatchedLog extends ActionLog {
  /** Actions of a send: a walk names each. */
  readonly acted: Seen[] = [];
  readonly executedCommands: Seen[] = [];

  /** In the order of their first begins, which is also that of the log's numbers: nothing else comes before a begin. */
  readonly #payoutIds: string[] = [];

  override asked(process: string, payoutId: string) {
    if (!this.#payoutIds.includes(payoutId)) this.#payoutIds.push(payoutId);
    const done = super.asked(process, payoutId);
    this.#watch(process);
    return () => {
      done();
      this.#watch(process);
    };
  }

  override executed(process: string, name: string, about: string) {
    super.executed(process, name, about);
    this.executedCommands.push({ kind: name, process });
    this.#watch(process);
  }

  override journaled(process: string, kind: 'entered' | 'noted') {
    super.journaled(process, kind);
    this.#watch(process);
  }

  override written(process: string) {
    const attempt = super.written(process);
    this.#watch(process);
    return attempt;
  }

  override reached(kind: 'arrived' | 'lost', attempt: number) {
    super.reached(kind, attempt);
    this.#watched = this.actions.length;
  }

  override look(worker?: number) {
    super.look(worker);
    // Before a command: what an operator has changed.
    if (worker === undefined) this.#watched = this.actions.length;
  }

  #watched = 0;
  #watch(process: string) {
    for (const action of this.actions.slice(this.#watched)) {
      const payoutId = 'payout' in action ? this.#payoutIds[action.payout] : undefined;
      this.acted.push({ kind: action.kind, process, payoutId });
    }
    this.#watched = this.actions.length;
  }
}
