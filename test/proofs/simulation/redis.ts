import { isQuiet, type LinkedRedis } from '../../world/ledger-link.js';
import type { RedisSnapshot } from '../../world/memory-redis.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { WorldProcess } from '../../world/world.js';
import type { Simulation } from './simulation.js';

const KEPT_SNAPSHOTS = 4;

/** The simulated Redis: one ledger, that goes down, hangs, comes back older, or comes back empty. */
export class SimRedis implements LinkedRedis {
  readonly ledger: WorldLedger;
  readonly #run: Pick<Simulation, 'world' | 'plan' | 'injector'>;
  #mode: 'up' | 'refuses' | 'hangs' = 'up';
  #waiting: (() => Promise<void>)[] = [];
  /** The newest last: an older one gives more out again. */
  #snapshots: RedisSnapshot[];
  #rollbacksLeft: number;
  #sendersToLose: number;
  generation = 0;
  beforeLease: RedisSnapshot | undefined;
  mayForget: (kept: RedisSnapshot | undefined) => boolean = () => true;
  onExecuted: (name: string) => void = () => undefined;

  constructor(run: Pick<Simulation, 'world' | 'plan' | 'injector'>, ledger: WorldLedger) {
    this.#run = run;
    this.ledger = ledger;
    this.#snapshots = [ledger.snapshot()];
    const { times } = run.plan;
    this.#rollbacksLeft = times.rollback + times.deposed;
    this.#sendersToLose = times.senderLost;
  }

  get isUp(): boolean {
    return this.#mode === 'up';
  }

  get refuses(): boolean {
    return this.#mode === 'refuses';
  }

  take(run: () => Promise<void>): void {
    if (this.#mode === 'hangs') this.#waiting.push(run);
    else void run();
  }

  before(name: string): void {
    if (name === 'acquireLease') this.beforeLease = this.ledger.snapshot();
  }

  executed(process: WorldProcess, name: string, about: string): void {
    const { world, plan, injector } = this.#run;
    const { random } = world;
    world.situations.executed(process.name, name, about, this.ledger.lease);
    injector.strike(process, 'executed', name);
    this.onExecuted(name);
    if (name === 'beginSend' && this.#sendersToLose > 0 && world.fault(0.5)) this.#loseSender();
    if (this.#rollbacksLeft === 0) return;
    if (random.chance(isQuiet(name) ? 0.005 : 0.1)) {
      this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
      world.note(() => 'redis: snapshot taken');
    }
    if (!isQuiet(name) && world.fault(plan.rollbackAtOnce)) this.rollBack();
  }

  goAway(forMs: number): void {
    const { world } = this.#run;
    this.#mode = world.random.pick(['refuses', 'hangs']);
    world.note(() => `redis ${this.#mode} for ${forMs.toFixed(1)}`);
    world.after(forMs, () => {
      void this.comeBack();
    });
  }

  async comeBack(): Promise<void> {
    if (this.#mode === 'up') return;
    this.#run.world.note(() => 'redis is back');
    this.#mode = 'up';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) await run();
  }

  /** Restarts with one of the last snapshots, or with the one given. What was committed since then is lost. */
  rollBack(snapshot = this.#pickSnapshot()): void {
    const { world } = this.#run;
    if (this.#rollbacksLeft === 0 || !this.mayForget(snapshot)) return;
    this.#rollbacksLeft -= 1;
    world.situations.rolledBack();
    world.note(() => `redis: ROLLED BACK to ${this.ledger.at(snapshot).sendCount} sends`);
    this.#restart();
    this.ledger.restore(snapshot);
  }

  #pickSnapshot(): RedisSnapshot {
    const { random } = this.#run.world;
    const newest = this.#snapshots.at(-1);
    return newest !== undefined && random.chance(0.5) ? newest : random.pick(this.#snapshots);
  }

  flush(): void {
    if (!this.mayForget(undefined)) return;
    this.#run.world.note(() => 'redis: FLUSHED');
    this.#restart();
    this.ledger.flush();
    this.#snapshots = [this.ledger.snapshot()];
  }

  #loseSender(): void {
    const { world } = this.#run;
    this.#sendersToLose -= 1;
    world.note(() => 'redis: the sender key is LOST');
    world.situations.senderLost();
    this.ledger.loseSender();
  }

  #restart(): void {
    this.generation += 1;
    this.#waiting = [];
    this.#mode = 'up';
  }
}
