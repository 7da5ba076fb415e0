import type { Clock } from '../base/clock.js';
import { type LedgerConnection, pipelinedReadable } from '../ledger/ledger-connection.js';
import { findRefusalOf } from '../ledger/account-refusal.js';
import type { WriteRefusal } from '../ledger/write-refusal.js';
import { holderOf, type LeaseHolder, parseLease } from '../ledger/sender-view.js';
import { type MoneyAtRisk, readMoneyAtRisk } from '../ledger/reads/money-at-risk.js';
import { type KnownWorker, parseWorkers, senderOf } from '../ledger/reads/workers.js';
import { countDuePayouts } from '../queues/job-balance.js';
import type { AccountAccess } from '../queues/open-account.js';
import { describeTrouble } from '../base/redis-errors.js';

export type RedisLife =
  { readonly kind: 'up' } | { readonly kind: 'unavailable'; readonly sinceMs: number; readonly reason: string };

export interface Observation {
  readonly redis: RedisLife;
  /** Redis's last reply, also while it does not respond. Undefined before the first. */
  readonly ledger: LedgerObservation | undefined;
}

export interface LedgerObservation extends Partial<MoneyAtRisk> {
  readonly platformId: number;
  /** Age of the look; all other times are as of then. */
  readonly ageMs: number;
  /** The clock of Redis now, ms: its time at the look, plus the time since. */
  readonly wallNow: number;
  readonly life: SenderLife;
  readonly workers: readonly ObservedWorker[];
  readonly pausedReason: string | undefined;
  readonly objections: number;
  /** Keys of the account that cannot be read, and without which nothing is sent. */
  readonly unreadable?: readonly string[];
  readonly due: number;
  readonly sending: number;
  readonly held: number;
  readonly unknown: number;
  /** Sends begun since the ledger exists. */
  readonly sends: number;
  /** The gateway that the ledger is bound to; undefined before the first send. */
  readonly gateway?: string | undefined;
  /** Why Redis refuses writes, and what to do; only known without a live sender. */
  readonly writeRefusal?: WriteRefusal | undefined;
  /** Since the last begin of a send; undefined if none was seen while the account was polled. */
  readonly sinceSendMs: number | undefined;
  /** Since when the account is polled without a pause. */
  readonly watchedMs: number;
  /** How long payouts have waited for a live sender that nothing holds off; otherwise 0. */
  readonly readyMs: number;
}

interface Look {
  readonly at: number;
  readonly redisNow: number;
  readonly facts: LookFacts;
}

type LookFacts = Pick<
  LedgerObservation,
  | 'pausedReason'
  | 'objections'
  | 'unreadable'
  | 'due'
  | 'sending'
  | 'held'
  | 'unknown'
  | 'sends'
  | 'gateway'
  | 'writeRefusal'
  | keyof MoneyAtRisk
>;

const LOOK_EVERY_MS = 400;

/** A slower Redis counts as unavailable: a page must respond within a second. */
const REDIS_RESPONDS_WITHIN_MS = 700;

const WAIT_STEP_MS = 20;

/** If a count rises in a longer pause, the time of the rise is unknown. */
const LOOK_GAP_MAX_MS = 10_000;

/** How long after the last page request, in ms, the watch continues. */
const WATCH_FOR_MS = 30_000;

/**
 * Polls an account while a reader has its pages open: one round trip to Redis, twice a second. What changed since the
 * last look is alive.
 */
export class AccountPoller {
  readonly #connection: LedgerConnection;
  readonly #clock: Pick<Clock, 'now' | 'sleep'>;
  readonly #stop = new AbortController();
  readonly #senderLife = new SenderLifeTracker();
  readonly #workers = new WorkerLives();
  #visitedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #last: Look | undefined;
  #sends: { readonly since: number; readonly count: number; readonly roseAt: number | undefined } | undefined;
  #readySince: number | undefined;
  /** Since when the running look has had no reply. */
  #waitingSince: number | undefined;
  #trouble: { readonly since: number; readonly reason: string } | undefined;

  /** @param clock - monotonic; heartbeats come in real time */
  constructor({ ledger }: Pick<AccountAccess, 'ledger'>, clock: Pick<Clock, 'now' | 'sleep'>) {
    this.#connection = ledger.connection;
    this.#clock = clock;
  }

  /** Starts the watch, and returns the observation once it is known whether Redis responds. */
  async visit(): Promise<Observation> {
    const now = this.#clock.now();
    const isNew = this.#running === undefined;
    this.#visitedAt = now;
    this.#running ??= this.#watch();
    if (isNew)
      await this.#until(() => this.#trouble !== undefined || (this.#last?.at ?? 0) >= now, REDIS_RESPONDS_WITHIN_MS);
    return this.observation;
  }

  /** As {@link visit}, but also waits for the first heartbeat, little more than two seconds. */
  async visitSender(): Promise<Observation> {
    await this.visit();
    const isDecided = (): boolean => this.observation.ledger?.life.kind !== 'checking';
    await this.#until(isDecided, FIRST_HEARTBEAT_WITHIN_MS + LOOK_EVERY_MS);
    return this.observation;
  }

  get observation(): Observation {
    const now = this.#clock.now();
    return { redis: this.#redisLife(now), ledger: this.#last && this.#observeLedger(this.#last, now) };
  }

  close(): void {
    this.#stop.abort();
  }

  #redisLife(now: number): RedisLife {
    if (this.#trouble !== undefined) {
      return { kind: 'unavailable', sinceMs: now - this.#trouble.since, reason: this.#trouble.reason };
    }
    const waitingMs = now - (this.#waitingSince ?? now);
    if (waitingMs < REDIS_RESPONDS_WITHIN_MS) return { kind: 'up' };
    return { kind: 'unavailable', sinceMs: now - (this.#last?.at ?? now - waitingMs), reason: 'it does not reply' };
  }

  #observeLedger({ at, redisNow, facts }: Look, now: number): LedgerObservation {
    const { since = at, roseAt } = this.#sends ?? {};
    return {
      ...facts,
      platformId: this.#connection.platformId,
      ageMs: now - at,
      wallNow: redisNow + now - at,
      life: this.#senderLife.life(at),
      workers: this.#workers.observe(at),
      sinceSendMs: roseAt === undefined ? undefined : at - roseAt,
      watchedMs: at - since,
      readyMs: at - (this.#readySince ?? at),
    };
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted && this.#clock.now() - this.#visitedAt < WATCH_FOR_MS) {
      const startedAt = this.#clock.now();
      this.#waitingSince ??= startedAt;
      try {
        await this.#look();
        this.#trouble = undefined;
      } catch (error) {
        const since = this.#trouble?.since ?? this.#last?.at ?? startedAt;
        this.#trouble = { since, reason: describeTrouble(error as Error) };
      }
      this.#waitingSince = undefined;
      await this.#clock.sleep(LOOK_EVERY_MS, this.#stop.signal);
    }
    this.#running = undefined;
  }

  async #look(): Promise<void> {
    const { keys } = this.#connection;
    const reading = pipelinedReadable(this.#connection, (pipeline) =>
      pipeline
        .hgetall(keys.sender)
        .hgetall(keys.workers)
        .hmget(keys.ledger, 'pausedReason', 'audience')
        .hlen(keys.objections)
        .zcard(keys.state('sending'))
        .zcard(keys.state('held'))
        .zcard(keys.state('unknown'))
        .time(),
    );
    const [{ replies, unreadable }, due, atRisk] = await Promise.all([
      reading,
      countDuePayouts(this.#connection),
      readMoneyAtRisk(this.#connection),
    ]);
    const [sender = {}, workers = {}, [paused, gateway] = [], objections = 0, ...others] = replies as [
      ...[Record<string, string>?, Record<string, string>?, (string | null)[]?, number?],
      ...(number | undefined)[],
    ];
    const [sending = 0, held = 0, unknown = 0] = others;
    const time = replies.at(-1) as [string | number, string | number];
    const at = this.#clock.now();
    const redisNow = Number(time[0]) * 1_000 + Math.floor(Number(time[1]) / 1_000);
    this.#noteSends(Number(sender['sends'] ?? 0), at);
    this.#senderLife.note(holderOf(parseLease(sender)), at);
    this.#workers.note(parseWorkers(workers), at, redisNow);
    // Workers cannot report to a Redis that refuses writes: only this tells it from dead ones.
    const isAlive = this.#senderLife.life(at).kind === 'alive';
    const writeRefusal = isAlive ? undefined : await findRefusalOf(this.#connection);
    const sends = Number(sender['sends'] ?? 0);
    const said = { pausedReason: paused ?? undefined, gateway: gateway || undefined, ...atRisk };
    const needed = unreadable.filter((key) => key !== keys.workers);
    const facts = { ...said, objections, unreadable: needed, due, sending, held, unknown, sends, writeRefusal };
    this.#noteReady(facts, at, redisNow);
    this.#last = { at, redisNow, facts };
  }

  /** Time while the account is idle, paused or held off is no failure to send. */
  #noteReady({ pausedReason, objections, due, sending }: LookFacts, at: number, redisNow: number): void {
    const life = this.#senderLife.life(at);
    const isAlive = life.kind === 'alive';
    const sender = isAlive ? senderOf(life.owner, this.#workers.observe(at)) : undefined;
    const isHeldOff = (sender?.holdOffUntil ?? 0) > redisNow;
    const isStopped = pausedReason !== undefined || objections > 0 || !isAlive || isHeldOff;
    if (isStopped || due + sending === 0) this.#readySince = undefined;
    else if (this.#readySince === undefined || !this.#isContinuous(at)) this.#readySince = at;
  }

  #isContinuous(at: number): boolean {
    return at - (this.#last?.at ?? Number.NEGATIVE_INFINITY) < LOOK_GAP_MAX_MS;
  }

  #noteSends(count: number, at: number): void {
    const before = this.#sends;
    if (before === undefined || !this.#isContinuous(at)) this.#sends = { since: at, count, roseAt: undefined };
    else this.#sends = { since: before.since, count, roseAt: count > before.count ? at : before.roseAt };
  }

  async #until(holds: () => boolean, limitMs: number): Promise<void> {
    const deadline = this.#clock.now() + limitMs;
    while (!holds() && !this.#stop.signal.aborted && this.#clock.now() < deadline)
      await this.#clock.sleep(WAIT_STEP_MS, this.#stop.signal);
  }
}

type SenderLife =
  | { readonly kind: 'none' }
  /** The watch is too short to say. */
  | (LeaseHolder & { readonly kind: 'checking' })
  /** `silentMs`: since the heartbeat's last seen rise, or the start of the watch. */
  | (LeaseHolder & { readonly kind: 'alive' | 'silent'; readonly silentMs: number });

/** The heartbeat rises every two seconds; a busy machine may miss one. */
const ALIVE_WITHIN_MS = 4_800;

/** A live sender is seen this long after the first look, in ms: two seconds and a reserve. */
const FIRST_HEARTBEAT_WITHIN_MS = 2_300;

/** A rise after a longer pause says nothing about the present. */
const HEARTBEAT_GAP_MAX_MS = 1_500;

/**
 * Decides whether a sender is alive. Only a rising heartbeat counts, because a dead process keeps its lease. It
 * compares no clocks of two machines.
 */
export class SenderLifeTracker {
  #holder: LeaseHolder | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #watchedSince = 0;
  #roseAt: number | undefined;

  /** @param now - monotonic, ms */
  note(holder: LeaseHolder | null, now: number): void {
    const isContinuous = now - this.#lookedAt <= HEARTBEAT_GAP_MAX_MS;
    const isSame = holder?.owner === this.#holder?.owner && holder?.epoch === this.#holder?.epoch;
    const isLater = !isSame || holder?.heartbeat !== this.#holder?.heartbeat;
    if (!isContinuous || !isSame) {
      this.#watchedSince = now;
      this.#roseAt = undefined;
    }
    // A process that takes the lease during the watch is alive too.
    if (isContinuous && isLater) this.#roseAt = now;
    this.#holder = holder;
    this.#lookedAt = now;
  }

  /** @param now - monotonic, ms */
  life(now: number): SenderLife {
    if (this.#holder === null) return { kind: 'none' };
    const silentMs = now - (this.#roseAt ?? this.#watchedSince);
    if (this.#roseAt !== undefined) {
      return { ...this.#holder, kind: silentMs < ALIVE_WITHIN_MS ? 'alive' : 'silent', silentMs };
    }
    if (silentMs < FIRST_HEARTBEAT_WITHIN_MS) return { ...this.#holder, kind: 'checking' };
    return { ...this.#holder, kind: 'silent', silentMs };
  }
}

export interface ObservedWorker extends KnownWorker {
  readonly silentMs: number;
}

/** A process reports every five seconds. */
export const WORKER_SILENT_AFTER_MS = 8_000;

/** A worker process whose report changes is alive. */
class WorkerLives {
  #reports = new Map<string, { readonly worker: KnownWorker; readonly changedAt: number }>();

  /**
   * @param now - monotonic, ms
   * @param wallNow - of Redis: the only measure for a process not seen before
   */
  note(workers: readonly KnownWorker[], now: number, wallNow: number): void {
    this.#reports = new Map(
      workers.map((worker) => {
        const before = this.#reports.get(worker.name);
        if (before === undefined) return [worker.name, { worker, changedAt: now - Math.max(0, wallNow - worker.at) }];
        return [worker.name, { worker, changedAt: before.worker.at === worker.at ? before.changedAt : now }];
      }),
    );
  }

  observe(now: number): ObservedWorker[] {
    return [...this.#reports.values()].map(({ worker, changedAt }) => ({ ...worker, silentMs: now - changedAt }));
  }
}
