import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { FaultInjector } from './fault-injector.js';
import type { Attacker } from './signed/attacker.js';
import { nearBoundary, type Plan } from './plan.js';
import type { SimProcess } from './sim-process.js';
import type { SimRedis } from './sim-redis.js';

export interface LedgerLinkOptions {
  readonly process: SimProcess;
  readonly redis: SimRedis;
  readonly plan: Plan;
  readonly injector: FaultInjector;
  /** Told when a send is about to begin. */
  readonly onBegin: () => void;
  /** Who answers in the place of Redis. */
  readonly attacker?: Pick<Attacker, 'forge' | 'hasStruck'> | undefined;
}

/** Asked often and changing little: their faults are rarer, and they are left out of the trace. */
const QUIET = new Set([
  'readSender',
  'renewLease',
  'queued',
  'readPayout',
  'findForgottenSends',
  'readSending',
  'held',
  'marked',
]);

/** A command that lingers in the network longer than this never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

/** One command on its way to the simulated Redis and its reply on the way back. */
export class LedgerCall<Reply> {
  readonly #options: LedgerLinkOptions;
  readonly #name: string;
  readonly #about: string;
  readonly #run: (ledger: WorldLedger) => Promise<Reply>;
  readonly #onWay: (reply: Reply) => Reply;
  readonly #isQuiet: boolean;
  readonly #askedAt: number;
  readonly #generation: number;
  #isReplyLost = false;
  #replyMs = 0;
  #isWatched = false;
  #resolve: (reply: Promise<Reply>) => void = ignore;
  #reject: (error: Error) => void = ignore;

  /** @param onWay - what becomes of the reply */
  constructor(
    options: LedgerLinkOptions,
    name: string,
    about: string,
    run: (ledger: WorldLedger) => Promise<Reply>,
    onWay: (reply: Reply) => Reply = (reply) => reply,
  ) {
    this.#options = options;
    this.#onWay = onWay;
    this.#name = name;
    this.#about = about;
    this.#run = run;
    this.#isQuiet = QUIET.has(name);
    this.#askedAt = options.process.now();
    this.#generation = options.redis.generation;
  }

  async start(): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#send();
    });
  }

  #send(): void {
    const { process, redis, injector, plan } = this.#options;
    if (process.dead) return;
    if (this.#name === 'beginSend') this.#options.onBegin();
    injector.strike(process, 'asked', this.#name);
    // Killed before the command left.
    if (isDead(process)) return;
    if (redis.refuses) {
      process.after(1, () => {
        this.#fail('connection refused');
      });
      return;
    }
    const requestMs = this.#delayMs();
    this.#replyMs = this.#delayMs();
    const isLost = this.#isHit(plan.faults.ledgerRequestLost);
    this.#isReplyLost = this.#isHit(plan.faults.ledgerReplyLost);
    // Most calls get their reply long before: they need no timer.
    const isLong = requestMs + this.#replyMs > plan.settings.commandTimeoutMs / 2;
    if (isLost || this.#isReplyLost || isLong) this.#watch();
    if (isLost) return;
    process.world.after(requestMs, () => {
      this.#arrive();
    });
  }

  #arrive(): void {
    const { redis } = this.#options;
    this.#watchUnlessTaken();
    if (redis.generation !== this.#generation || redis.refuses) return;
    redis.take(async () => this.#execute());
  }

  /** Where Redis does not take the command at once, the caller's timer matters. */
  #watchUnlessTaken(): void {
    const { redis } = this.#options;
    if (redis.generation !== this.#generation || !redis.isUp) this.#watch();
  }

  async #execute(): Promise<void> {
    const { process, redis, injector } = this.#options;
    if (!this.#isQuiet) process.world.note(() => `${process.name} ${this.#name} ${this.#about}`);
    if (this.#name === 'acquireLease') redis.beforeLease = redis.ledger.snapshot();
    const reply = this.#run(redis.ledger);
    await reply.catch((error: unknown) => {
      // A script that met a record of an attacker.
      if (this.#options.attacker?.hasStruck === true) return;
      // A change that was refused is a reply like others.
      if (!(error instanceof ConflictError)) process.world.fail(`${this.#name} failed: ${(error as Error).message}`);
    });
    process.world.situations.executed(process.name, this.#name, this.#about, redis.ledger.lease);
    injector.strike(process, 'executed', this.#name);
    redis.executed(this.#name, this.#isQuiet);
    const heard = reply.then(this.#onWay);
    heard.catch(ignore);
    if (this.#isReplyLost) return;
    process.after(this.#replyMs, () => {
      this.#deliver(heard);
    });
  }

  #deliver(reply: Promise<Reply>): void {
    const { process, plan } = this.#options;
    // After a stop, Node looks at its timers before it looks at its sockets, or the other way round.
    const isLate = process.now() - this.#askedAt >= plan.settings.commandTimeoutMs;
    if (isLate && process.world.random.chance(0.5)) this.#fail('no reply in time');
    else this.#resolve(reply);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const { process, plan } = this.#options;
    process.afterOwn(plan.settings.commandTimeoutMs - (process.now() - this.#askedAt), () => {
      this.#fail('no reply in time');
    });
  }

  /** Without effect once the reply is there: a promise is settled once. */
  #fail(reason: string): void {
    this.#reject(new RedisUnavailableError(reason));
  }

  #delayMs(): number {
    const { world } = this.#options.process;
    const { faults, settings } = this.#options.plan;
    return this.#isHit(faults.ledgerSlow)
      ? Math.min(LINGERS_MAX_MS, nearBoundary(world.random, settings))
      : world.random.between(0.1, 1);
  }

  #isHit(probability: number): boolean {
    return this.#options.process.world.fault(this.#isQuiet ? probability / 10 : probability);
  }
}

/** Until someone waits for the reply. One for all: the build names every closure that is assigned, which takes its time. */
function ignore(): void {
  // Nobody is there to be told.
}

/** Asks again: the type checker takes an earlier result for granted. */
function isDead(process: SimProcess): boolean {
  return process.dead;
}
