import type { RedisSnapshot } from '../../world/memory-redis.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { Plan } from './plan.js';
import type { World } from './world.js';

/** What Redis does with commands at the moment: takes them, refuses connections, or lets them wait. */
type Mode = 'up' | 'refuses' | 'hangs';

/** How many copies there are to fall back to. */
const KEPT_SNAPSHOTS = 4;

/** The simulated Redis: one ledger, that goes down, hangs, comes back older, or comes back empty. */
export class SimRedis {
  readonly ledger: WorldLedger;
  readonly #world: World;
  readonly #plan: Plan;
  #mode: Mode = 'up';
  #waiting: (() => Promise<void>)[] = [];
  /** The newest last: an older one gives more out again. */
  #snapshots: RedisSnapshot[];
  #rollbacksLeft: number;
  #sendersToLose: number;
  /** Rises with every restart: what was under way on an old connection is gone. */
  generation = 0;
  /** As it was right before the lease was taken the last time. */
  beforeLease: RedisSnapshot | undefined;
  /** Asked before anything is forgotten: whether it is within what the sending rules assume. */
  mayForget: (kept: RedisSnapshot | undefined) => boolean = () => true;
  /** Told of every command that was carried out. */
  onExecuted: (name: string) => void = () => undefined;

  constructor(world: World, plan: Plan, ledger: WorldLedger) {
    this.#world = world;
    this.#plan = plan;
    this.ledger = ledger;
    this.#snapshots = [ledger.snapshot()];
    this.#rollbacksLeft = plan.times.rollback + plan.times.deposed;
    this.#sendersToLose = plan.times.senderLost;
  }

  get ledgerId(): string {
    return this.ledger.ledgerId ?? '';
  }

  get isUp(): boolean {
    return this.#mode === 'up';
  }

  get refuses(): boolean {
    return this.#mode === 'refuses';
  }

  /** Runs a command, at once or when it hangs no longer. */
  take(run: () => Promise<void>): void {
    if (this.#mode === 'hangs') this.#waiting.push(run);
    else void run();
  }

  /** Called after a command of a sender has run. */
  executed(name: string, isQuiet: boolean): void {
    const { random } = this.#world;
    this.onExecuted(name);
    if (name === 'beginSend' && this.#sendersToLose > 0 && this.#world.fault(0.5)) this.#loseSender();
    if (this.#rollbacksLeft === 0) return;
    if (random.chance(isQuiet ? 0.005 : 0.1)) this.takeSnapshot();
    if (!isQuiet && this.#world.fault(this.#plan.rollbackAtOnce)) this.rollBack();
  }

  takeSnapshot(): void {
    this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
    this.#world.note(() => 'redis: snapshot taken');
  }

  goAway(forMs: number): void {
    this.#mode = this.#world.random.pick(['refuses', 'hangs']);
    this.#world.note(() => `redis ${this.#mode} for ${forMs.toFixed(1)}`);
    this.#world.after(forMs, () => {
      void this.comeBack();
    });
  }

  async comeBack(): Promise<void> {
    if (this.#mode === 'up') return;
    this.#world.note(() => 'redis is back');
    this.#mode = 'up';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) await run();
  }

  /** Restarts with one of the last snapshots, or with the one given. What was committed since then is lost. */
  rollBack(snapshot = this.#pickSnapshot()): void {
    if (this.#rollbacksLeft === 0 || !this.mayForget(snapshot)) return;
    this.#rollbacksLeft -= 1;
    this.#world.situations.rolledBack();
    this.#world.note(() => `redis: ROLLED BACK to ${this.ledger.at(snapshot).sendCount} sends`);
    this.#restart();
    this.ledger.restore(snapshot);
  }

  #pickSnapshot(): RedisSnapshot {
    const { random } = this.#world;
    const newest = this.#snapshots.at(-1);
    return newest !== undefined && random.chance(0.5) ? newest : random.pick(this.#snapshots);
  }

  flush(): void {
    if (!this.mayForget(undefined)) return;
    this.#world.note(() => 'redis: FLUSHED');
    this.#restart();
    this.ledger.flush();
    this.#snapshots = [this.ledger.snapshot()];
  }

  #loseSender(): void {
    this.#sendersToLose -= 1;
    this.#world.note(() => 'redis: the sender key is LOST');
    this.#world.situations.senderLost();
    this.ledger.loseSender();
  }

  #restart(): void {
    this.generation += 1;
    this.#waiting = [];
    this.#mode = 'up';
  }
}
