import { every } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { type PaymentFacts, readPaymentFacts } from '../../ledger/payment-facts.js';
import { countPayouts, readEventsAfter, type StateEvent, STREAM_BEGINNING } from '../../ledger/reads/state-events.js';
import { isFinal, PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import { parsePosition, POSITION } from '../../ledger/reads/batches.js';
import { parseStates } from '../../ledger/reads/currency-tallies.js';
import { loadStatistics, saveStatistics, type StoredStatistics } from '../../ledger/reads/statistics.js';
import type { Logger } from '../../base/logger.js';
import {
  type Counters,
  countEvent,
  countGap,
  dropOldMinutes,
  parseFields,
  type SendGap,
  tally,
  toFields,
} from './counters.js';
import { recount } from './recount.js';

const EVENTS_PER_STEP = 500;

const STEP_EVERY_MS = 5_000;
/** Once a step found nothing. */
const IDLE_STEP_EVERY_MS = 15_000;
/** While there are more events: 2,500 a second. */
const CATCH_UP_MS = 200;
const CHECK_EVERY_MS = 60_000;

/** Shortest time between two full counts. It doubles, because the cause of a wrong count may recur. */
const RECOUNT_MIN_MS = 10 * 60_000;
const RECOUNT_MAX_MS = 24 * 60 * 60_000;

/** Payouts on their way whose amounts are kept, so that each is read once. */
const KEPT_FACTS = 1_000;

/** Failed counts repeated at once. Then the count need not match any more. */
const STRICT_RECOUNTS = 3;

/**
 * Keeps an account's statistics. One step writes counts and position, and only on top of what this keeper read. So
 * crashes and concurrent keepers neither repeat nor skip an event.
 *
 * The scripts that change payouts do not count. Each change, also a begin, would read and write one key more, and add exact
 * decimals in Lua. A change that an interrupted script left half done could count twice, so that a recount would stay.
 */
export class StatisticsKeeper {
  readonly #connection: LedgerConnection;
  readonly #logger: Logger;
  readonly #takeGaps: () => readonly SendGap[];
  readonly #facts = new Map<string, PaymentFacts>();
  #stored: StoredStatistics = { revision: '', statistics: {}, batches: {} };
  #counters: Counters | undefined;
  #checkedAt: number;
  #recountAfter = -Infinity;
  #recountDelayMs = RECOUNT_MIN_MS;
  #failedRecounts = 0;
  #isWrong = false;
  /** The last step found no event. */
  #isIdle = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(connection: LedgerConnection, logger: Logger, takeGaps: () => readonly SendGap[] = () => []) {
    this.#connection = connection;
    this.#logger = logger;
    this.#takeGaps = takeGaps;
    this.#checkedAt = connection.clock.now();
  }

  get queuedPaymentIds(): readonly number[] {
    return this.#counters?.sums.queued.list().map(({ paymentId }) => paymentId) ?? [];
  }

  /** Counts events until the signal is aborted. Failures here affect no payout. */
  async run(signal: AbortSignal): Promise<void> {
    const count = async (): Promise<number> => {
      if (await this.step(signal)) return CATCH_UP_MS;
      return this.#isIdle ? IDLE_STEP_EVERY_MS : STEP_EVERY_MS;
    };
    const onError = (error: Error): void => {
      // Other parts report an unavailable Redis.
      if (error instanceof RedisUnavailableError) return;
      this.#logger.warn({ error: error.message }, 'the events could not be counted, will try again');
    };
    await every(STEP_EVERY_MS, count, { clock: this.#connection.clock, signal, onError });
  }

  /** @returns whether there are more events */
  async step(signal: AbortSignal): Promise<boolean> {
    return this.#inTurn(async () => {
      const counters = (this.#counters ??= await this.#load());
      if (counters === undefined) return this.#recount(undefined, signal);
      const events = await readEventsAfter(this.#connection, counters.position, EVENTS_PER_STEP);
      this.#isIdle = events?.length === 0;
      const mayMissEvents = events === undefined || (counters.position === STREAM_BEGINNING && events.length > 0);
      if (mayMissEvents) return this.#recount(undefined, signal);
      if (this.#isWrong && this.#connection.clock.now() >= this.#recountAfter) return this.#recount(counters, signal);
      const gaps = this.#takeGaps();
      for (const gap of gaps) countGap(counters, gap);
      if (events.length + gaps.length > 0) await this.#count(counters, events);
      const isCaughtUp = events.length < EVENTS_PER_STEP;
      if (isCaughtUp) await this.#check(counters);
      return !isCaughtUp;
    });
  }

  /**
   * Removes payouts and subtracts them from the sums. Removals have no event.
   * @param remove - returns the removed payouts
   */
  async countRemoval(state: PayoutState, remove: () => Promise<readonly PaymentFacts[]>): Promise<number> {
    return this.#inTurn(async () => {
      const removed = await remove();
      if (removed.length > 0) await this.#takeOut(state, removed);
      return removed.length;
    });
  }

  /** A removal stands even if it cannot be counted. The next comparison with the ledger finds the difference. */
  async #takeOut(state: PayoutState, removed: readonly PaymentFacts[]): Promise<void> {
    if (this.#counters === undefined) return;
    for (const facts of removed) tally(this.#counters, state, facts, -1);
    try {
      await this.#save(this.#counters);
    } catch {
      this.#counters = undefined;
    }
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    try {
      return await turn;
    } catch (error) {
      // The counts in memory may not have been written.
      this.#counters = undefined;
      throw error;
    }
  }

  async #load(): Promise<Counters | undefined> {
    // Redis may have come back older, and have other payouts of the same ids since.
    this.#facts.clear();
    this.#stored = await loadStatistics(this.#connection);
    const counters = parseFields(this.#stored);
    const { [POSITION]: position, ...batches } = this.#stored.batches;
    // Someone may have deleted or altered them.
    const areWhole = Object.values(batches).every((text) => parseStates(text) !== undefined);
    this.#isWrong ||= counters !== undefined && (parsePosition(position) !== counters.position || !areWhole);
    return counters;
  }

  async #count(counters: Counters, events: readonly StateEvent[]): Promise<void> {
    await this.#readFacts(events);
    for (const event of events) {
      const known = this.#facts.get(event.change?.payoutId ?? '');
      // The payout was removed since, so only a new count finds its facts.
      if (event.change !== undefined && known === undefined) this.#isWrong = true;
      countEvent(counters, event, known);
    }
    this.#dropFacts(events);
    dropOldMinutes(counters);
    await this.#save(counters);
  }

  async #readFacts(events: readonly StateEvent[]): Promise<void> {
    const payoutIds = new Set(events.flatMap(({ change }) => change?.payoutId ?? []));
    const unread = [...payoutIds].filter((payoutId) => !this.#facts.has(payoutId));
    const read = await readPaymentFacts(this.#connection, unread);
    for (const [index, payoutId] of unread.entries()) {
      const facts = read[index];
      if (facts !== undefined) this.#facts.set(payoutId, facts);
    }
  }

  #dropFacts(events: readonly StateEvent[]): void {
    for (const { change } of events)
      if (change !== undefined && isFinal(change.to)) this.#facts.delete(change.payoutId);
    const oldest = [...this.#facts.keys()].slice(0, Math.max(0, this.#facts.size - KEPT_FACTS));
    for (const payoutId of oldest) this.#facts.delete(payoutId);
  }

  async #save(counters: Counters): Promise<void> {
    const written = await saveStatistics(this.#connection, this.#stored, toFields(counters));
    if (written === undefined) this.#counters = undefined;
    else this.#stored = written;
  }

  /** Compares the sums with the ledger, if no event came in between. */
  async #check(counters: Counters): Promise<void> {
    const { clock } = this.#connection;
    if (clock.now() - this.#checkedAt < CHECK_EVERY_MS || this.#counters === undefined) return;
    const { newestEventId, counts } = await countPayouts(this.#connection);
    if (newestEventId !== counters.position) return;
    this.#checkedAt = clock.now();
    this.#isWrong = PAYOUT_STATES.some((state) => counters.sums[state].count !== counts[state]);
  }

  async #recount(former: Counters | undefined, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#connection;
    const startedAt = clock.now();
    const before = this.#counters;
    this.#facts.clear();
    const mustFit = this.#failedRecounts < STRICT_RECOUNTS;
    const counters = await recount(this.#connection, former, mustFit, signal);
    // The former counters may be half updated.
    this.#counters = counters;
    if (counters === undefined) {
      this.#failedRecounts += 1;
      return false;
    }
    // The stream may cover fewer hours than the former counts, and has no gaps.
    counters.lastSendAt ??= before?.lastSendAt;
    counters.pace = before?.pace ?? [];
    for (const [number, minute] of before?.minutes ?? []) {
      const { smallestGapMs, largestGapMs } = minute;
      counters.minutes.set(number, { ...(counters.minutes.get(number) ?? minute), smallestGapMs, largestGapMs });
    }
    dropOldMinutes(counters);
    await this.#save(counters);
    this.#isWrong = false;
    this.#failedRecounts = 0;
    this.#recountAfter = clock.now() + this.#recountDelayMs;
    this.#recountDelayMs = Math.min(2 * this.#recountDelayMs, RECOUNT_MAX_MS);
    this.#logger.info({ durationMs: Math.round(clock.now() - startedAt) }, 'counted the payouts for the statistics');
    return true;
  }
}
