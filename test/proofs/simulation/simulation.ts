import { GatewayBook } from '../../world/gateway-link.js';
import { soundPieces, walletOf, type Pieces } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { WALL_START } from '../../world/world.js';
import { ChanceWorld } from './chance-world.js';
import { FaultInjector, ScheduledFaults } from './faults.js';
import { SimHosts } from './hosts.js';
import { makePlan, type Plan } from './plan.js';
import { SimPolicy } from './policed/policy.js';
import { SimRedis } from './redis.js';
import { Attacker } from './signed/attacker.js';
import { SimControl } from './signed/control.js';
import { SignedUsers } from './signed/users.js';
import type { Situation } from './situations.js';
import { SimUsers } from './users.js';

export interface RunOptions {
  readonly pieces?: Pieces;
  readonly tracing?: boolean;
  readonly signed?: boolean;
  readonly policed?: boolean;
}

export interface RunResult {
  readonly seed: number;
  readonly broken: string | undefined;
  readonly steps: number;
  readonly arrivals: number;
  readonly endedAt: number;
  readonly trace: readonly string[];
  readonly situations: ReadonlySet<Situation>;
}

const NOTICED_WITHIN_MS = 20_000;
const ATTACKED_FOR_MS = 60_000;

export class Simulation {
  readonly world: ChanceWorld;
  readonly plan: Plan;
  readonly pieces: Pieces;
  readonly injector: FaultInjector;
  readonly redis: SimRedis;
  readonly book: GatewayBook;
  readonly hosts: SimHosts;
  readonly control: SimControl | undefined;
  readonly attacker: Attacker | undefined;
  readonly policy: SimPolicy | undefined;
  readonly #users: SimUsers;

  constructor(
    seed: number,
    { pieces = soundPieces, tracing = false, signed = false, policed = false }: RunOptions = {},
  ) {
    const world = (this.world = new ChanceWorld(seed, tracing));
    const plan = (this.plan = makePlan(world.random));
    this.pieces = pieces;
    world.note(() => JSON.stringify(plan));
    this.policy = policed ? new SimPolicy(seed, world, plan) : undefined;
    const isSigned = signed || this.policy?.isSigned === true;
    this.control = isSigned ? new SimControl(seed, world, plan, this.policy) : undefined;
    this.injector = new FaultInjector(this);
    let ledgers = 0;
    const ledger = pieces.makeLedger({
      clock: { wallNow: () => WALL_START + Math.round(world.now) },
      nextLedgerId: () => `ledger-${(ledgers += 1)}`,
    });
    this.redis = new SimRedis(this, ledger);
    this.attacker = this.control?.hasAttacker === true ? new Attacker(this, this.control) : undefined;
    this.book = new GatewayBook(world, this.#mayBreak, this.policy?.judge);
    this.#users = new SimUsers(this, this.control && new SignedUsers(this, this.control));
    this.hosts = new SimHosts(this);
    const faults = new ScheduledFaults(this);
    this.hosts.onBegin = (process) => {
      faults.depose(process);
    };
    this.redis.mayForget = (kept) => faults.mayForget(kept && ledger.at(kept));
  }

  async run(): Promise<string | undefined> {
    const { world } = this;
    const { faultsForMs, settings } = this.plan;
    try {
      await world.runUntil(faultsForMs);
      await this.#endFaults();
      const waits = settings.leaseMs + settings.quarantineMs + settings.guardMs + 2 * settings.inFlightMaxMs;
      const signedMs = this.control === undefined ? 0 : 900_000;
      const end = faultsForMs + 120_000 + 20 * waits + signedMs + (this.policy?.drainsWithinMs ?? 0);
      do {
        const isDrained = (): boolean => this.#users.isDrained;
        if (!(await world.runUntil(this.isAttacked ? ATTACKED_FOR_MS + faultsForMs : end, isDrained)))
          return this.isAttacked ? undefined : this.#describeStuck();
        // Requests in flight must do no harm either, and a worker that knows more than the ledger gets the time to object.
        await world.runUntil(world.now + Math.max(settings.inFlightMaxMs + settings.leaseMs, NOTICED_WITHIN_MS));
      } while (!this.#users.isDrained);
      return this.isAttacked ? undefined : findFalseState(this.redis.ledger, this.book);
    } catch (error) {
      return (error as Error).message;
    }
  }

  get isAttacked(): boolean {
    return this.attacker?.hasStruck === true;
  }

  readonly #mayBreak = (promise: 'pace' | 'once'): boolean =>
    this.isAttacked && (promise === 'pace' ? this.attacker?.breaksPace === true : this.plan.hosts > 1);

  get result(): Omit<RunResult, 'seed' | 'broken'> {
    const { steps, now, trace = [], situations } = this.world;
    return { steps, arrivals: this.book.arrivals, endedAt: now, trace: [...trace], situations: situations.met };
  }

  async #endFaults(): Promise<void> {
    this.world.note(() => 'no more faults');
    this.world.faultsOn = false;
    this.world.calmUntil = 0;
    await this.redis.comeBack();
    this.hosts.repair();
  }

  #describeStuck(): string {
    const states = this.redis.ledger.payouts().map(({ payoutId, state }) => `${payoutId} ${state}`);
    return `stuck: not drained after faults ended: ${states.join(', ')}`;
  }
}

export function findFalseState(ledger: WorldLedger, book: GatewayBook): string | undefined {
  for (const { payoutId, state, txhash } of ledger.payouts()) {
    const paid = book.paymentTo(walletOf(payoutId));
    const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || txhash === paid;
    if (!isTrue) return `lost: ${payoutId} is ${state} ${txhash ?? ''}, the gateway has ${paid ?? 'no payment'}`;
  }
  return undefined;
}

export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const simulation = new Simulation(seed, options);
  const broken = await simulation.run();
  const { result } = simulation;
  simulation.hosts.close();
  return { seed, broken, ...result };
}
