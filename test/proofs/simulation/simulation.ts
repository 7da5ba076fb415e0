import { UNKNOWN_IN_FLIGHT_MS } from '../../../src/base/settings.js';
import { Random } from '../../doubles/random.js';
import { ActionLog } from '../../world/action-log.js';
import { drawDialect } from '../../world/dialect.js';
import { type GatewayBook, openGateway } from '../../world/links.js';
import { type Pieces, soundPieces, walletOf } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { type Progress, World } from '../../world/world.js';
import { type FaultInjector, makeInjector, openRedis, scheduleFaults, type SimRedis } from './faults.js';
import { openHosts, type SimHosts } from './hosts.js';
import { inFlightOf, makePlan, onTwoHosts, type Plan } from './plan.js';
import { CLOCKS_WITHIN_MS as POLICED_CLOCKS_WITHIN_MS } from './policed/judge.js';
import { SimPolicy } from './policed/policy.js';
import { cancelSome } from './replicated/commands.js';
import { scheduleFailovers } from './replicated/failovers.js';
import { Replication } from './replicated/replication.js';
import { type Attacker, openAttacker } from './signed/attacker.js';
import { CLOCKS_WITHIN_MS, openControl, type SimControl } from './signed/control.js';
import { Situations } from './situations.js';
import { openUsers } from './users.js';

const MAX_STEPS = 400_000;

/** Steps in the order of their times: one seed decides everything. */
export class ChanceWorld extends World {
  override readonly random: Random;
  override readonly isByChance = true;
  faultsOn = true;
  override readonly situations = new Situations(() => this.now);
  calmUntil = 0;
  /** A stream of its own, so that runs in which nothing hangs stay as they are. */
  override readonly hangs: Readonly<{ random: Random; rate: number }>;
  #isDone: () => boolean = () => false;
  #untilMs = 0;

  constructor(seed: number, isTracing: boolean) {
    super(isTracing);
    this.random = new Random(seed);
    const random = new Random(seed ^ 0x6861_6e67);
    this.hangs = { random, rate: random.chance(0.25) ? random.pick([0.05, 0.2, 0.5]) : 0 };
  }

  get steps() {
    return this.count;
  }

  override get mayFail() {
    return this.faultsOn && this.now >= this.calmUntil;
  }

  async runUntil(untilMs: number, isDone: () => boolean = () => false) {
    this.#isDone = isDone;
    this.#untilMs = untilMs;
    await this.run();
    if (this.failure !== undefined) throw new Error(this.failure);
    return isDone();
  }

  protected override next(): Progress {
    if (this.#isDone()) return 'over';
    const step = this.pending.at(-1);
    if (step === undefined || step.at > this.#untilMs) {
      this.now = this.#untilMs;
      return 'over';
    }
    this.pending.pop();
    this.count += 1;
    if (this.count > MAX_STEPS) throw new Error(`no end after ${MAX_STEPS} steps`);
    this.now = step.at;
    if (step.isDelivered !== true || step.process?.takes(step) === true) step.run();
    return 'ran';
  }
}

export type RunOptions = Readonly<{
  pieces?: Pieces;
  tracing?: boolean;
  signed?: boolean;
  policed?: boolean;
  replicated?: boolean;
  /** The run writes down its actions for the model of a send. */
  logging?: boolean;
}>;

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
  readonly replication: Replication | undefined;
  readonly #failovers: ReturnType<typeof scheduleFailovers> | undefined;
  readonly #users: ReturnType<typeof openUsers>;

  constructor(
    seed: number,
    {
      pieces = soundPieces,
      tracing = false,
      signed = false,
      policed = false,
      replicated = false,
      logging = false,
    }: RunOptions = {},
  ) {
    const world = (this.world = new ChanceWorld(seed, tracing));
    const drawn = makePlan(world.random);
    // A stream of its own: a payout's way is the same on both, as far as the sender goes.
    const dialect = drawDialect(new Random(seed ^ 0x6469_616c));
    const plan = (this.plan = replicated ? onTwoHosts(drawn) : drawn);
    this.pieces = pieces;
    world.note(() => JSON.stringify({ ...plan, dialect }));
    if (dialect.knowsOrderIds) world.situations.meet('a gateway that knows order ids');
    this.policy = policed ? new SimPolicy(seed, world, plan) : undefined;
    const isSigned = signed || this.policy?.isSigned === true;
    this.control = isSigned ? openControl(seed, world, plan, this.policy) : undefined;
    this.injector = makeInjector(this);
    const ledger = pieces.makeLedger({ clock: world });
    if (logging) world.actions = new ActionLog(ledger);
    this.replication = replicated ? new Replication(seed, this, ledger) : undefined;
    this.redis = openRedis(this, ledger);
    this.attacker = this.control?.hasAttacker === true ? openAttacker(this, this.control) : undefined;
    const watcher = this.replication?.watcher ?? this.policy?.judge;
    this.book = openGateway(world, this.#mayBreak, watcher, dialect);
    this.#users = openUsers(this);
    this.hosts = openHosts(this);
    const faults = scheduleFaults(this);
    this.hosts.onBegin = (process) => {
      faults.depose(process);
    };
    this.#failovers = this.replication && scheduleFailovers(this, this.replication);
    if (this.replication !== undefined) cancelSome(this, this.replication);
    this.redis.mayForget = (kept) => faults.mayForget(kept && ledger.at(kept));
  }

  async run(): Promise<string | undefined> {
    const { world } = this;
    const { faultsForMs, settings } = this.plan;
    try {
      await world.runUntil(faultsForMs);
      await this.#endFaults();
      const waits = settings.leaseMs + settings.quarantineMs + 2 * inFlightOf(settings);
      const signedMs = this.control === undefined ? 0 : 900_000;
      // If a sender's message is lost, everyone waits for the longest time in which any request could arrive.
      const end =
        faultsForMs + 120_000 + 20 * waits + 2 * UNKNOWN_IN_FLIGHT_MS + signedMs + (this.policy?.drainsWithinMs ?? 0);
      do {
        const isDrained = () => this.#users.isDrained;
        if (!(await world.runUntil(this.isAttacked ? ATTACKED_FOR_MS + faultsForMs : end, isDrained)))
          return this.isAttacked ? undefined : this.#describeStuck();
        // Requests in flight must do no harm either, and a worker that knows more than the ledger gets the time to object.
        await world.runUntil(world.now + Math.max(inFlightOf(settings) + settings.leaseMs, NOTICED_WITHIN_MS));
      } while (!this.#users.isDrained);
      return this.isAttacked ? undefined : findFalseState(this.redis.ledger, this.book);
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** A wall clock that is off by more holds payouts, and pauses, for as long: its host is repaired first. */
  tolerated(offsetMs: number) {
    const withinMs = this.policy ? POLICED_CLOCKS_WITHIN_MS : this.control ? CLOCKS_WITHIN_MS : Infinity;
    return Math.max(-withinMs, Math.min(withinMs, offsetMs));
  }

  get isAttacked() {
    return this.attacker?.hasStruck === true;
  }

  readonly #mayBreak = (promise: 'pace' | 'once') =>
    this.isAttacked && (promise === 'pace' ? this.attacker?.breaksPace === true : this.plan.hosts > 1);

  async #endFaults() {
    this.world.note(() => 'no more faults');
    this.world.faultsOn = false;
    this.world.calmUntil = 0;
    await this.redis.comeBack();
    this.#failovers?.end();
    this.hosts.repair();
  }

  #describeStuck() {
    const states = this.redis.ledger.payouts().map(({ payoutId, state }) => `${payoutId} ${state}`);
    return `stuck: not drained after faults ended: ${states.join(', ')}`;
  }
}

export function findFalseState(ledger: WorldLedger, book: GatewayBook): string | undefined {
  for (const { payoutId, state, gatewayId, txhash } of ledger.payouts()) {
    const paid = book.paymentTo(walletOf(payoutId));
    if (txhash !== undefined && (book.dialect.api === 'v2' || txhash !== gatewayId))
      return `made up: ${payoutId} has the txhash ${txhash}, which the gateway has not told`;
    const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || gatewayId === paid;
    if (!isTrue) return `lost: ${payoutId} is ${state} ${gatewayId ?? ''}, the gateway has ${paid ?? 'no payment'}`;
  }
  return undefined;
}

export async function runSeed(seed: number, options: RunOptions = {}) {
  const simulation = new Simulation(seed, options);
  const broken = await simulation.run();
  const { book, hosts, world } = simulation;
  const { steps, trace = [], situations } = world;
  const { actions } = world;
  const result = {
    seed,
    broken,
    steps,
    arrivals: book.arrivals,
    trace: [...trace],
    situations: situations.met,
    actions,
  };
  hosts.close();
  return result;
}
