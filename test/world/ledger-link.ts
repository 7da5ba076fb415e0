import { ConflictError, RedisUnavailableError } from '../../src/base/errors.js';
import type { Payout } from '../../src/ledger/payout.js';
import type { SenderLedger } from '../../src/ledger/sender-ledger.js';
import type { FaultInjector } from '../proofs/simulation/faults.js';
import { nearBoundary, type Plan } from '../proofs/simulation/plan.js';
import type { Attacker } from '../proofs/simulation/signed/attacker.js';
import { never, type WorldProcess } from './world.js';

export type LinkedRedis = Readonly<{
  generation: number;
  refuses: boolean;
  isUp: boolean;
  take(run: () => Promise<void>): unknown;
  before(name: string): void;
  executed(process: WorldProcess, name: string, about: string): void;
}>;

export const ALWAYS_UP: LinkedRedis = {
  ...{ generation: 0, refuses: false, isUp: true },
  take: async (run) => run(),
  before: () => undefined,
  executed: () => undefined,
};

type LedgerLinkOptions = Readonly<{
  process: WorldProcess;
  redis: LinkedRedis;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
  onBegin?: () => void;
  attacker?: Pick<Attacker, 'forge' | 'hasStruck'> | undefined;
}>;

export type LedgerCall = <Reply>(name: string, about: string, run: () => Promise<Reply>) => Promise<Reply>;

/** What the worker asks: the sender's calls, and which payouts wait (in production BullMQ knows that). */
export interface WorkerLedger extends SenderLedger {
  queued(): Promise<readonly string[]>;
}

/** A process's connection to Redis: commands and replies are late or lost, and may overtake each other. */
export function connectLedger(options: LedgerLinkOptions): LedgerCall {
  return async (name, about, run) => new Call(options, name, about, run).start();
}

const CALLS: { readonly [Name in keyof SenderLedger]: (...args: Parameters<SenderLedger[Name]>) => string } = {
  readSender: () => '',
  acquireLease: (owner) => owner,
  renewLease: ({ owner }) => owner,
  releaseLease: ({ owner }) => owner,
  readPayout: (payoutId) => payoutId,
  findForgottenSends: () => '',
  beginSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  holdPayout: (payoutId, _, { reason }) => `${payoutId} ${reason}`,
  findSignedBefore: () => '',
  readSpends: () => '',
  revertSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  finishSend: ({ payoutId, attempt }, { kind }) => `${payoutId} ${attempt} ${kind}`,
  readSending: () => '',
  markSendsUnknown: (_, attempts) => attempts.map(({ payoutId }) => payoutId).join(' '),
  object: ({ reason }) => reason,
};

export function linkLedger(ledger: SenderLedger, call: LedgerCall): SenderLedger {
  const link = ([name, about]: [string, unknown]): [string, unknown] => {
    const run = (...args: never[]) =>
      (ledger[name as keyof SenderLedger] as (...given: never[]) => Promise<unknown>)(...args);
    const describe = about as (...args: never[]) => string;
    return [name, async (...args: never[]) => call(name, describe(...args), async () => run(...args))];
  };
  return Object.fromEntries(Object.entries(CALLS).map(link)) as unknown as SenderLedger;
}

/** Asked often and changing little: their faults are rarer, and they are left out of the trace. */
const QUIET: ReadonlySet<string> = new Set([
  ...['readSender', 'renewLease', 'queued', 'readPayout', 'findForgottenSends', 'readSending', 'held', 'marked'],
]);

export function isQuiet(name: string): boolean {
  return QUIET.has(name);
}

/** A command that lingers in the network longer than this never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

class Call<Reply> {
  readonly #options: LedgerLinkOptions;
  readonly #name: string;
  readonly #about: string;
  readonly #run: () => Promise<Reply>;
  readonly #askedAt: number;
  readonly #generation: number;
  #isReplyLost = false;
  #replyMs = 0;
  #isWatched = false;
  #resolve: (reply: Promise<Reply>) => void = ignore;
  #reject: (error: Error) => void = ignore;

  constructor(options: LedgerLinkOptions, name: string, about: string, run: () => Promise<Reply>) {
    this.#options = options;
    this.#name = name;
    this.#about = about;
    this.#run = run;
    this.#askedAt = options.process.now();
    this.#generation = options.redis.generation;
  }

  async start(): Promise<Reply> {
    if (this.#options.process.isDead) return never();
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#send();
    });
  }

  #send() {
    const { process, redis, injector, plan, onBegin } = this.#options;
    if (this.#name === 'beginSend') onBegin?.();
    injector?.strike(process, 'asked', this.#name);
    if (process.isDead) return;
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
    const isLong = requestMs + this.#replyMs > plan.settings.commandTimeoutMs / 2;
    if (isLost || this.#isReplyLost || isLong) this.#watch();
    if (isLost) return;
    const { world } = process;
    const about = { ...this.#step, kind: 'command', deadline: world.now + LINGERS_MAX_MS } as const;
    world.after(requestMs, () => this.#arrive(), about);
  }

  get #step(): object {
    const onTrouble = () => {
      this.#watch();
    };
    return { label: this.#name, process: this.#options.process, onTrouble };
  }

  #arrive(): unknown {
    const { redis } = this.#options;
    if (redis.generation !== this.#generation || !redis.isUp) this.#watch();
    if (redis.generation !== this.#generation || redis.refuses) return undefined;
    return redis.take(async () => this.#execute());
  }

  async #execute() {
    const { process, redis, attacker } = this.#options;
    if (!isQuiet(this.#name)) process.world.note(() => `${process.name} ${this.#name} ${this.#about}`);
    redis.before(this.#name);
    const reply = this.#run();
    await reply.catch((error: unknown) => {
      if (error instanceof ConflictError || attacker?.hasStruck === true) return;
      process.world.fail(`${this.#name} failed: ${(error as Error).message}`);
    });
    redis.executed(process, this.#name, this.#about);
    const isForged = attacker !== undefined && this.#name === 'readPayout';
    const heard = isForged ? reply.then((payout) => attacker.forge(payout as Payout) as Reply) : reply;
    heard.catch(ignore);
    if (this.#isReplyLost) return;
    const deliver = () => {
      this.#deliver(heard);
    };
    process.after(this.#replyMs, deliver, { ...this.#step, kind: 'reply' });
  }

  #deliver(reply: Promise<Reply>) {
    const { process, plan } = this.#options;
    // After a stop, Node looks at its timers before it looks at its sockets, or the other way round.
    const isLate = process.now() - this.#askedAt >= plan.settings.commandTimeoutMs;
    if (isLate && process.world.random.chance(0.5)) this.#fail('no reply in time');
    else this.#resolve(reply);
  }

  #watch() {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const { process, plan } = this.#options;
    const leftMs = plan.settings.commandTimeoutMs - (process.now() - this.#askedAt);
    const about = { kind: 'timeout', label: `${this.#name} without a reply` } as const;
    const fail = () => {
      this.#fail('no reply in time');
    };
    process.afterOwn(leftMs, fail, about);
  }

  #fail(reason: string) {
    this.#reject(new RedisUnavailableError(reason));
  }

  #delayMs() {
    const { world } = this.#options.process;
    const { faults, settings } = this.#options.plan;
    return this.#isHit(faults.ledgerSlow)
      ? Math.min(LINGERS_MAX_MS, nearBoundary(world.random, settings))
      : world.random.between(0.1, 1);
  }

  #isHit(probability: number) {
    return this.#options.process.world.fault(isQuiet(this.#name) ? probability / 10 : probability);
  }
}

function ignore() {
  // Nobody waits for it.
}
