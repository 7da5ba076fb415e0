import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { followSignals, untilAborted } from '../base/clock.js';
import { ClosedError } from '../base/errors.js';
import { closestName, gatewayIdField, parseInput } from '../base/fields.js';
import { inSpan, loadTracing, type SpanOptions } from '../base/tracing.js';
import type { AccountStats } from '../ledger/reads/account-stats.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import { type ListOptions, listPayouts, type PayoutPage } from '../ledger/payout-queries.js';
import {
  batchField,
  lineField,
  type NewPayout,
  type Payout,
  type PayoutInput,
  requirePayoutId,
} from '../ledger/payout.js';
import { PAYOUT_STATES } from '../ledger/states.js';
import { type AccountConnectionOptions, cancelPayout, type LedgerAccess, openLedger } from '../queues/open-ledger.js';
import {
  type BatchStats,
  type BulkEnqueue,
  type EnqueuedPayout,
  readBatchStats,
  toBulkEnqueue,
  toEnqueuedPayout,
} from './enqueue-results.js';
import {
  EventListeners,
  type EventsOptions,
  eventsSchema,
  type PayoutEventListener,
  readGroupEvents,
} from './events/event-group.js';
import { ACCOUNT_EVENTS, type PayoutEvent, type PayoutEventName } from './events/payout-events.js';
import { ListedCurrencies, type Refused } from './listed-currencies.js';
import { checkEach, type ParsedPayout, parsePayout, parsePayouts } from './parse-payouts.js';
import { abortedCall } from './enqueue-groups.js';
import { inChunks, PayoutIntake } from './payout-intake.js';
import type { ProducerControl } from './producer-control.js';
import { waitForPayout } from './wait-for-payout.js';

/** Which account a producer enqueues for, how it reaches Redis, and what it refuses. */
export interface CoreProducerOptions extends AccountConnectionOptions {
  /**
   * Whether `enqueue` and `enqueueMany` refuse an address whose checksum is wrong, or that is of another network than
   * its currency's in the gateway's list (`PAYOUT_CHECK_ADDRESSES`).
   * @defaultValue true
   */
  readonly checkAddresses?: boolean | undefined;
  /**
   * Whether `enqueue` and `enqueueMany` refuse a `paymentId` that is not in the gateway's list, and an amount that the
   * list does not allow (`PAYOUT_CHECK_PAYMENT_IDS`). The list comes from the worker: without one, or with one older than a day, every id
   * is accepted.
   * @defaultValue true
   */
  readonly checkPaymentIds?: boolean | undefined;
  /**
   * Whether `enqueue` and `enqueueMany` wait until every known replica of Redis has the payouts. Otherwise a failover
   * may forget what was just accepted. Calls of one moment share a wait; without replicas there is none.
   * @defaultValue true
   */
  readonly confirm?: boolean | undefined;
  /**
   * Whether `enqueue` and `enqueueMany` refuse everything while there is no such list, or one older than a day
   * (`PAYOUT_REQUIRE_CURRENCIES`).
   * @defaultValue false
   */
  readonly requireCurrencies?: boolean | undefined;
}

const MAX_PAGE_SIZE = 1_000;

const listSchema = z
  .strictObject({
    state: z.enum(PAYOUT_STATES, { error: `must be one of ${PAYOUT_STATES.join(', ')}` }).exactOptional(),
    batch: batchField.exactOptional(),
    limit: z
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .max(MAX_PAGE_SIZE, `must be at most ${MAX_PAGE_SIZE}`)
      .exactOptional(),
    cursor: z
      .string('must be the next of the page before')
      .regex(/^\d+$/, 'must be the next of the page before')
      .exactOptional(),
  })
  .refine(({ state, batch }) => (state === undefined) !== (batch === undefined), 'must name a state or a batch');

const cancelSchema = z.strictObject({
  by: lineField.default('application'),
  reason: lineField.default('no reason given'),
});

const signalField = z.instanceof(AbortSignal, { error: 'must be an AbortSignal' }).optional();

const NO_OPTIONS: { readonly signal?: undefined } = {};

const enqueueSchema = z.strictObject({ signal: signalField });

const waitSchema = z.strictObject({
  timeoutMs: z.number('must be a number of ms').min(0, 'must be at least 0'),
  signal: signalField,
});

const EVENT_NAMES: readonly string[] = [...PAYOUT_STATES, ...ACCOUNT_EVENTS];

const listenerSchema = z.object({
  name: z.unknown().refine((name) => EVENT_NAMES.includes(name as string), {
    error: ({ input }) => {
      const meant = typeof input === 'string' ? closestName(input, EVENT_NAMES) : undefined;
      return `must be the name of an event${meant === undefined ? '' : `, did you mean ${meant}?`}`;
    },
  }),
  listener: z.custom<PayoutEventListener>((listener) => typeof listener === 'function', 'must be a function'),
});

/** Enqueues, looks up, waits and cancels. The public class of this name adds control of money. */
export class CoreProducer {
  readonly #account: LedgerAccess;
  readonly #control: ProducerControl | undefined;
  readonly #checksums: boolean;
  readonly #listed: ListedCurrencies;
  readonly #closed = new AbortController();
  #listeners: EventListeners | undefined;
  /** Settles once the calls before have their signatures. */
  #signing: Promise<unknown> = Promise.resolve();
  #opening: Promise<PayoutIntake> | undefined;
  #closing: Promise<void> | undefined;

  /** @throws InvalidConfigError when the options cannot be used */
  constructor(
    {
      checkAddresses = true,
      checkPaymentIds = true,
      requireCurrencies = false,
      confirm = true,
      ...connection
    }: CoreProducerOptions,
    control?: ProducerControl,
  ) {
    this.#checksums = checkAddresses;
    this.#control = control;
    this.#account = openLedger(connection, undefined, confirm ? undefined : 'reply');
    const rules = { checksums: checkAddresses, paymentIds: checkPaymentIds, isRequired: requireCurrencies };
    this.#listed = new ListedCurrencies(this.#account.ledger, rules);
  }

  /**
   * Accepts a payout. The same payoutId with the same data is the same payout, so repeat a call whose outcome is
   * unclear. With a `signer` a repeated call renews the signature until the first send begins. A payout that has a
   * signature (`key`, `signature`, `issuedAt`, `expiresAt`) keeps it.
   *
   * Returns once the ledger has the payout. The job follows within tens of milliseconds, in call order. If the process
   * ends first, the worker that holds the lease finds the payout in the outbox. It adds the job about four seconds
   * after the call at the latest.
   * @param options - `signal`: an abort before the payout is written to Redis enqueues nothing. A later one changes
   * nothing: the call returns or throws as if there were no signal
   * @throws InvalidInputError naming field, rule and value
   * @throws StoppedError if the signal came first: nothing was enqueued
   * @throws SignerError if the signer gave no signature: nothing was enqueued
   * @throws ConflictError if the payoutId exists with other data, naming the fields
   * @throws RedisUnavailableError, ClosedError
   */
  async enqueue(
    input: PayoutInput,
    options: { readonly signal?: AbortSignal | undefined } = NO_OPTIONS,
  ): Promise<EnqueuedPayout> {
    this.#use();
    const { signal } = options === NO_OPTIONS ? options : parseInput(enqueueSchema, options, 'options');
    const parsed = parsePayout(input, { checksums: this.#checksums });
    const { payout } = parsed;
    const intake = await this.#openIntake();
    const refused = this.#mayRefuse([parsed]) ? await this.#findRefused([payout]) : undefined;
    requireListed(payout, refused);
    return inSpan('enqueue payout', this.#spanOf(payout), async () => {
      const signed = this.#control === undefined ? payout : await this.#sign(payout, this.#control, signal);
      return toEnqueuedPayout(await intake.enqueue(signed, signal));
    });
  }

  /**
   * Accepts many payouts as if each were given to `enqueue` in turn, but faster and with conflicts as values. Returns
   * once their jobs are added, or are left to the worker.
   * @throws InvalidInputError naming each broken rule as `[3].amount`; nothing is enqueued then
   * @throws RedisUnavailableError, SignerError; some payouts may then have been accepted, and asking again is safe
   * @throws Error if a record in Redis is damaged; asking again is safe here too
   */
  async enqueueMany(inputs: readonly PayoutInput[]): Promise<BulkEnqueue> {
    this.#use();
    const parsed = parsePayouts(inputs, { checksums: this.#checksums }, this.#control);
    const payouts = parsed.map(({ payout }) => payout);
    const intake = await this.#openIntake();
    const refused = this.#mayRefuse(parsed) ? await this.#findRefused(payouts) : undefined;
    checkEach(payouts, (payout) => {
      requireListed(payout, refused);
    });
    const results: EnqueueResult[] = [];
    for await (const chunk of intake.enqueueChunks(inChunks(payouts), this.#control)) results.push(...chunk);
    return toBulkEnqueue(results);
  }

  /** One payout with its history, or undefined. @throws InvalidInputError if the payoutId is no string */
  async get(payoutId: string): Promise<Payout | undefined> {
    return this.#read(requirePayoutId(payoutId));
  }

  /** The payout whose payment the gateway calls so, or undefined. @throws InvalidInputError */
  async getByGatewayId(gatewayId: string): Promise<Payout | undefined> {
    const { ledger } = this.#use();
    const payoutId = await ledger.findByGatewayId(parseInput(gatewayIdField, gatewayId, 'gatewayId'));
    return payoutId === undefined ? undefined : this.#read(payoutId);
  }

  /** One page of the payouts in a state or a batch. @throws InvalidInputError */
  async list(options: ListOptions): Promise<PayoutPage> {
    const page = await listPayouts(
      this.#use().ledger.connection,
      parseInput(listSchema, options, 'options', '{ state } or { batch }'),
    );
    return { ...page, payouts: page.payouts.map((payout) => this.#verified(payout)) };
  }

  /** The account at a glance: payouts by state, the pause, the sender. */
  async stats(): Promise<AccountStats> {
    const { connection } = this.#use().ledger;
    const { readAccountStats } = await import('../ledger/reads/account-stats.js');
    return readAccountStats(connection);
  }

  /** The payouts of a batch by state. @throws InvalidInputError, NotFoundError */
  async batchStats(batch: string): Promise<BatchStats> {
    return readBatchStats(this.#use().ledger.connection, parseInput(batchField, batch, 'batch'));
  }

  /**
   * Cancels a payout that is queued or held, or gives up a rejected one.
   * @param options - who cancels it and why, for its history
   * @returns the payout: `cancelled`, or `written_off` if it was, or may have been, paid
   * @throws NotFoundError
   * @throws ConflictError if it is neither queued, held nor rejected, naming its state
   * @throws RedisUnavailableError if the outcome is unknown; asked again, a ConflictError that names `cancelled` or
   * `written_off` means success
   */
  async cancel(payoutId: string, options: { readonly by?: string; readonly reason?: string } = {}): Promise<Payout> {
    const account = this.#use();
    requirePayoutId(payoutId);
    const actor = parseInput(cancelSchema, options, 'options');
    const intake = await this.#opening;
    return cancelPayout(account, payoutId, actor, async () => intake?.settled());
  }

  /**
   * Waits until a payout is completed, failed, held, rejected, unknown, cancelled or written off: final, or in need of a
   * person. It also waits while a policy holds a payout until a time without an approval, because that is then sent.
   * @param options - `timeoutMs`: the longest wait; `signal`: ends it, and changes nothing about the payout
   * @returns the payout in that state
   * @throws WaitTimeoutError naming its state; NotFoundError; ClosedError
   * @throws StoppedError if the signal ended the wait
   */
  async waitFor(
    payoutId: string,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<Payout> {
    const { ledger } = this.#use();
    requirePayoutId(payoutId);
    const { timeoutMs, signal } = parseInput(waitSchema, options, 'options', '{ timeoutMs }');
    return this.#verified(await waitForPayout(ledger, payoutId, timeoutMs, this.#closed.signal, signal));
  }

  /**
   * The account's events for an application that must miss none. Each comes at least once, in order, to one consumer of
   * a group at a time. An event counts as handled when the loop asks for the next. After a `break` or an error in the
   * loop it comes again. If a consumer dies, another continues with its current event after `claimAfterMs`. Waits for
   * an unavailable Redis.
   * @example
   * for await (const event of producer.events({ group: 'ledger' })) await book(event);
   * @throws InvalidInputError, ClosedError
   */
  events(options: EventsOptions): AsyncGenerator<PayoutEvent, void, undefined> {
    const { ledger, logger } = this.#use();
    const settings = parseInput(eventsSchema, options, 'options', '{ group, consumer }');
    return readGroupEvents(ledger.connection, settings, this.#closed.signal, logger);
  }

  /**
   * Calls a listener for a payout's new state or an event of the account (see {@link PayoutEventType}), until the
   * producer is closed. For screens and logs: events during downtime are missed.
   * @throws InvalidInputError if there is no such event
   * @throws ClosedError
   */
  on(name: PayoutEventName, listener: PayoutEventListener): this {
    const { ledger, logger } = this.#use();
    parseInput(listenerSchema, { name, listener });
    this.#listeners ??= new EventListeners(ledger.connection, logger, this.#closed.signal);
    this.#listeners.on(name, listener);
    return this;
  }

  /** Removes a listener. @throws InvalidInputError if there is no such event */
  off(name: PayoutEventName, listener: PayoutEventListener): this {
    parseInput(listenerSchema, { name, listener });
    this.#listeners?.off(name, listener);
    return this;
  }

  /**
   * Adds the jobs of accepted payouts, and ends the connection that the producer opened. Waits some seconds at most for
   * a slow Redis: the outbox has the rest. Safe to call twice.
   */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #spanOf({ payoutId }: NewPayout): SpanOptions {
    const { platformId } = this.#account.ledger.connection;
    return { kind: 'producer', attributes: { 'payouts.platform_id': platformId, 'payouts.payout_id': payoutId } };
  }

  /** Calls pass to the ledger in their order, whichever signature comes first. */
  async #sign(payout: NewPayout, control: ProducerControl, signal: AbortSignal | undefined): Promise<NewPayout> {
    if (signal?.aborted === true) throw abortedCall(payout);
    const unlessAborted = async <Result>(work: Promise<Result>): Promise<Result> =>
      signal === undefined ? work : orAborted(work, signal, payout);
    // An aborted call holds up none after it.
    const signing = unlessAborted(control.signAll([payout]));
    const before = this.#signing;
    this.#signing = Promise.allSettled([before, signing]);
    await unlessAborted(before);
    const [signed = payout] = await signing;
    return signed;
  }

  async #close(): Promise<void> {
    const intake = await this.#opening?.catch(() => undefined);
    // Calls that were made before are now being signed.
    await nextTurn();
    await this.#signing;
    await nextTurn();
    await intake?.close();
    await this.#account.close();
  }

  /** Only a call for which this is true waits for Redis: the others keep their order, and `close` waits for them. */
  #mayRefuse(payouts: readonly ParsedPayout[]): boolean {
    this.#listed.refresh();
    return this.#listed.mayRefuse(payouts);
  }

  async #findRefused(payouts: readonly NewPayout[]): Promise<Refused> {
    const refused = await this.#listed.findRefused(payouts);
    this.#use();
    return refused;
  }

  async #openIntake(): Promise<PayoutIntake> {
    return (this.#opening ??= this.#open());
  }

  async #open(): Promise<PayoutIntake> {
    try {
      await Promise.all([this.#listed.read(), loadTracing()]);
      return await PayoutIntake.open(this.#account);
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #read(payoutId: string): Promise<Payout | undefined> {
    const payout = await this.#use().ledger.get(payoutId);
    return payout && this.#verified(payout);
  }

  #verified(payout: Payout): Payout {
    return this.#control?.mark(payout) ?? payout;
  }

  #use(): LedgerAccess {
    if (this.#closed.signal.aborted) throw new ClosedError('Producer is closed; create a new one');
    return this.#account;
  }
}

function requireListed(payout: NewPayout, refused: Refused | undefined): void {
  const refusal = refused?.get(payout);
  if (refusal !== undefined) throw refusal;
}

/** @throws StoppedError if the signal comes first. The work goes on; its result is ignored */
async function orAborted<Result>(work: Promise<Result>, signal: AbortSignal, payout: NewPayout): Promise<Result> {
  const turn = followSignals(signal);
  const aborted = untilAborted(turn.signal).then(() => {
    throw abortedCall(payout);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    turn.end();
  }
}
