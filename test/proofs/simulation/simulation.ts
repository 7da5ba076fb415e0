import { FaultInjector } from './fault-injector.js';
import { mayForget } from './forgetting.js';
import { soundPieces, type Pieces } from './pieces.js';
import { makePlan, type Plan } from './plan.js';
import { ScheduledFaults } from './scheduled-faults.js';
import { Attacker } from './signed/attacker.js';
import { SignedUsers } from './signed/signed-users.js';
import { SimControl } from './signed/sim-control.js';
import { SimPolicy } from './policed/sim-policy.js';
import { SimGateway } from './sim-gateway.js';
import { SimHosts } from './sim-hosts.js';
import { walletOf } from './sim-payout.js';
import { SimRedis } from './sim-redis.js';
import { SimUsers } from './sim-users.js';
import type { Situation } from './situations.js';
import { World } from './world.js';

export interface RunOptions {
  readonly pieces?: Pieces;
  /** Keeps every step, to be printed. */
  readonly tracing?: boolean;
  /** Payouts are signed, and someone may attack Redis. */
  readonly signed?: boolean;
  /** A policy counts what is sent. */
  readonly policed?: boolean;
}

/** How a run ended. */
export interface RunResult {
  readonly seed: number;
  /** Which promise was broken; undefined when all were kept. */
  readonly broken: string | undefined;
  readonly steps: number;
  readonly arrivals: number;
  /** Virtual time, ms. */
  readonly endedAt: number;
  readonly trace: readonly string[];
  /** The situations that it came into. */
  readonly situations: ReadonlySet<Situation>;
}

/** A worker that knows more than the ledger objects within this time, once there are no more faults. */
const NOTICED_WITHIN_MS = 20_000;

/** Where an attacker has struck, nothing has to drain: what he left behind gets this long to do harm. */
const ATTACKED_FOR_MS = 60_000;

/** One run of the whole system, decided by one seed. */
export class Simulation {
  readonly #world: World;
  readonly #plan: Plan;
  readonly #redis: SimRedis;
  readonly #gateway: SimGateway;
  readonly #users: SimUsers;
  readonly #hosts: SimHosts;
  readonly #control: SimControl | undefined;
  readonly #attacker: Attacker | undefined;
  readonly #policy: SimPolicy | undefined;

  constructor(
    seed: number,
    { pieces = soundPieces, tracing = false, signed = false, policed = false }: RunOptions = {},
  ) {
    const world = (this.#world = new World(seed, tracing));
    const plan = (this.#plan = makePlan(world.random));
    world.note(() => JSON.stringify(plan));
    const policy = (this.#policy = policed ? new SimPolicy(seed, world, plan) : undefined);
    const isSigned = signed || policy?.isSigned === true;
    const control = (this.#control = isSigned ? new SimControl(seed, world, plan, policy) : undefined);
    const injector = new FaultInjector(world, plan);
    let ledgers = 0;
    const ledger = pieces.makeLedger({
      clock: { wallNow: () => Date.UTC(2030, 0, 1) + Math.round(world.now) },
      nextLedgerId: () => `ledger-${(ledgers += 1)}`,
    });
    const redis = (this.#redis = new SimRedis(world, plan, ledger));
    const attacker = control?.hasAttacker === true ? new Attacker({ world, plan, redis, control }) : undefined;
    this.#attacker = attacker;
    const gateway = (this.#gateway = new SimGateway(world, this.#mayBreak, policy?.judge));
    const isAttacked = (): boolean => attacker?.hasStruck === true;
    const { signsInDoubt } = pieces;
    this.#users = new SimUsers({
      world,
      plan,
      redis,
      gateway,
      folders: () => hosts.all,
      refusing: () => hosts.refusing,
      adoptsWithoutProof: pieces.adoptsWithoutProof,
      policy,
      signed:
        control &&
        new SignedUsers({ world, redis, gateway, control, hosts: () => hosts.signed, isAttacked, signsInDoubt }),
    });
    const hosts = (this.#hosts = new SimHosts({
      world,
      plan,
      pieces,
      injector,
      redis,
      gateway,
      control,
      attacker,
      policy,
    }));
    const faults = new ScheduledFaults({ world, plan, injector, redis, hosts, control, policy });
    hosts.onBegin = (process) => {
      faults.depose(process);
    };
    redis.mayForget = (kept) => mayForget(kept && ledger.at(kept), { world, plan, hosts, lostFiles: faults.lostFiles });
  }

  /** @returns undefined when every promise was kept, else which one was not */
  async run(): Promise<string | undefined> {
    const { faultsForMs, settings } = this.#plan;
    try {
      await this.#world.run(() => false, faultsForMs);
      await this.#endFaults();
      const waits = settings.leaseMs + settings.quarantineMs + settings.guardMs + 2 * settings.inFlightMaxMs;
      const end =
        faultsForMs +
        120_000 +
        20 * waits +
        (this.#control === undefined ? 0 : 900_000) +
        (this.#policy?.drainsWithinMs ?? 0);
      do {
        if (
          !(await this.#world.run(() => this.#users.isDrained, this.#isAttacked ? ATTACKED_FOR_MS + faultsForMs : end))
        )
          return this.#isAttacked ? undefined : this.#describeStuck();
        // Requests in flight must do no harm either, and a worker that knows more than the ledger gets the time to object.
        const rest = Math.max(settings.inFlightMaxMs + settings.leaseMs, NOTICED_WITHIN_MS);
        await this.#world.run(() => false, this.#world.now + rest);
      } while (!this.#users.isDrained);
      return this.#isAttacked ? undefined : this.#findFalseState();
    } catch (error) {
      return (error as Error).message;
    }
  }

  get #isAttacked(): boolean {
    return this.#attacker?.hasStruck === true;
  }

  /** What docs/guarantees.md does not promise where someone writes to Redis. */
  readonly #mayBreak = (promise: 'pace' | 'once'): boolean =>
    this.#isAttacked && (promise === 'pace' ? this.#attacker?.breaksPace === true : this.#plan.hosts > 1);

  close(): void {
    this.#hosts.close();
  }

  get result(): Omit<RunResult, 'seed' | 'broken'> {
    const { steps, now, trace = [], situations } = this.#world;
    return { steps, arrivals: this.#gateway.arrivals, endedAt: now, trace: [...trace], situations: situations.met };
  }

  async #endFaults(): Promise<void> {
    this.#world.note(() => 'no more faults');
    this.#world.faultsOn = false;
    this.#world.calmUntil = 0;
    await this.#redis.comeBack();
    this.#hosts.continueAll();
    this.#hosts.setClocksRight();
  }

  #describeStuck(): string {
    const states = this.#redis.ledger.payouts().map(({ payoutId, state }) => `${payoutId} ${state}`);
    return `stuck: not drained after faults ended: ${states.join(', ')}`;
  }

  /** What the ledger says in the end must agree with what the gateway did. */
  #findFalseState(): string | undefined {
    for (const { payoutId, state, txhash } of this.#redis.ledger.payouts()) {
      const paid = this.#gateway.paymentTo(walletOf(payoutId));
      const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || txhash === paid;
      if (!isTrue) return `lost: ${payoutId} is ${state} ${txhash ?? ''}, the gateway has ${paid ?? 'no payment'}`;
    }
    return undefined;
  }
}

/** Runs one seed. */
export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const simulation = new Simulation(seed, options);
  const broken = await simulation.run();
  const { result } = simulation;
  simulation.close();
  return { seed, broken, ...result };
}
