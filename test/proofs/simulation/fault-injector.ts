import { nearBoundary, type Plan } from './plan.js';
import type { SimProcess } from './sim-process.js';
import type { World } from './world.js';

/** When a fault may hit a process. */
export type Moment = 'asked' | 'executed' | 'journal' | 'before the write' | 'after the write' | 'response';

/** What is asked often and changes little gets its faults at random times only. */
const QUIET = new Set(['readSender', 'renewLease', 'queued']);

/** Stops and kills processes at the moments that matter, and at any other. */
export class FaultInjector {
  readonly #world: World;
  readonly #plan: Plan;

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#plan = plan;
  }

  /** @param what - what the process is doing */
  strike(process: SimProcess, moment: Moment, what: string): void {
    const share = QUIET.has(what) ? 0.02 : 1;
    const { faults } = this.#plan;
    if (this.#world.fault(faults.pause * share)) {
      this.#world.note(() => `(${moment} ${what})`);
      process.pause(this.pauseMs());
    } else if (this.#world.fault(faults.kill * share)) {
      this.#world.note(() => `(${moment} ${what})`);
      process.kill();
    }
  }

  /** From a slow write to a disk that hangs until others have sent. */
  hangMs(): number {
    const { random } = this.#world.hangs;
    const { leaseMs, quarantineMs } = this.#plan.settings;
    return (
      random.pick([500, 4_999, 5_001, leaseMs + 5_000, 2 * (leaseMs + quarantineMs) + 10_000]) + random.between(0, 500)
    );
  }

  /** Mostly around the boundaries; sometimes so long that operators have decided in the meantime. */
  pauseMs(): number {
    const { random } = this.#world;
    const { settings } = this.#plan;
    if (random.chance(0.2)) {
      return random.between(1, 3) * (settings.leaseMs + settings.quarantineMs + 2 * settings.inFlightMaxMs + 10_000);
    }
    return nearBoundary(random, settings);
  }
}
