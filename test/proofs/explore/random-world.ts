import { Random } from '../../doubles/random.js';
import { describeStep, TIMES, World, type PendingStep, type Progress, type WorldProcess } from '../../world/world.js';

const PIECE_MS = 500;

/** Any step that waits may be the next one, whatever its time. Time passes only when a timer is chosen. */
export class RandomWorld extends World {
  limit = 0;
  readonly #order: Random;
  readonly #deviates: (step: PendingStep) => 'lose' | 'crash' | undefined;

  constructor(order: number, deviates: (step: PendingStep) => 'lose' | 'crash' | undefined) {
    super(true);
    this.#order = new Random(order);
    this.#deviates = deviates;
  }

  async turn(process: WorldProcess): Promise<void> {
    await new Promise<void>((resolve) => {
      process.after(0, resolve, { kind: 'mark', label: 'time passes' });
    });
  }

  protected override next(): Progress {
    const possible = this.pending.filter(
      (step) => !step.isGone && !(step.isDelivered && step.process?.isDead === true),
    );
    this.pending.splice(0, Infinity, ...possible);
    if (possible.length === 0 || this.count >= this.limit) return 'over';
    this.count += 1;
    let step = this.#order.pick(possible);
    if (TIMES.has(step.kind) && step.at > this.now) {
      const until = Math.min(step.at, this.now + PIECE_MS);
      const deadlineOf = ({ deadline = Infinity }: PendingStep): number => deadline;
      const due = possible.reduce((one, other) => (deadlineOf(other) < deadlineOf(one) ? other : one));
      if (deadlineOf(due) <= until) step = due;
      this.now = Math.min(until, deadlineOf(due));
      if (step !== due && this.now < step.at) return 'again';
    }
    this.pending.splice(this.pending.indexOf(step), 1);
    return this.#take(step);
  }

  #take(step: PendingStep): Progress {
    const deviation = this.#deviates(step);
    if (deviation === undefined) {
      this.carryOut(step);
      return 'ran';
    }
    this.note(() => `${deviation === 'lose' ? 'LOST' : 'KILLED before'}: ${describeStep(step)}`);
    if (deviation === 'lose') step.onTrouble?.();
    else if (step.process !== undefined) step.process.isDead = true;
    return 'again';
  }
}
