import { z } from 'zod';
import { ClosedError } from '../errors.js';
import { parseInput, txhashField } from '../fields.js';
import { readAccountStats, type AccountStats } from '../ledger/account-stats.js';
import { readGatewayFacts, type Currency } from '../ledger/gateway-facts.js';
import { batchField, lineField, type NewPayout, type Payout, type PayoutInput } from '../ledger/payout.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import { type ListOptions, listPayouts, type PayoutPage } from '../ledger/payout-queries.js';
import { PAYOUT_STATES } from '../ledger/states.js';
import { cancelPayout } from '../queues/cancel-payout.js';
import { openLedger, type AccountConnectionOptions, type LedgerAccess } from '../queues/open-ledger.js';
import { readBatchStats, type BatchStats } from './batch-stats.js';
import { toBulkEnqueue, toEnqueuedPayout, type BulkEnqueue, type EnqueuedPayout } from './enqueue-results.js';
import { eventsSchema, readGroupEvents, type EventsOptions } from './events/event-group.js';
import { EventListeners, type PayoutEventListener } from './events/event-listeners.js';
import type { PayoutEvent, PayoutEventName } from './events/payout-events.js';
import { checkRecipient, needsCurrencies } from './check-recipient.js';
import { checkEach, parsePayout, parsePayouts } from './parse-payouts.js';
import { inChunks, PayoutIntake } from './payout-intake.js';
import type { ProducerControl } from './producer-control.js';
import { waitForPayout } from './wait-for-payout.js';

/** Which account a producer enqueues for, how it reaches Redis, and what it refuses. */
export interface PayoutProducerOptions extends AccountConnectionOptions {
  /**
   * Whether `enqueue` and `enqueueMany` refuse an address whose checksum is wrong (`PAYOUT_CHECK_ADDRESSES`).
   * @defaultValue true
   */
  readonly checkAddresses?: boolean | undefined;
}

/** The gateway's list of currencies hardly ever changes. */
const KEEP_CURRENCIES_MS = 5 * 60_000;

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
    cursor: z.string().regex(/^\d+$/, 'must be the next of the page before').exactOptional(),
  })
  .refine(({ state, batch }) => (state === undefined) !== (batch === undefined), 'must name a state or a batch');

const cancelSchema = z.strictObject({
  by: lineField.default('application'),
  reason: lineField.default('no reason given'),
});

const waitSchema = z.strictObject({ timeoutMs: z.number().min(0, 'must be at least 0') });

/** Enqueues, looks up, waits and cancels. The public class of this name adds control of money. */
export class PayoutProducer {
  readonly #account: LedgerAccess;
  readonly #control: ProducerControl | undefined;
  readonly #checksums: boolean;
  #currencies: readonly Currency[] = [];
  #readCurrenciesAt = 0;
  readonly #closed = new AbortController();
  #listeners: EventListeners | undefined;
  #opening: Promise<PayoutIntake> | undefined;
  #closing: Promise<void> | undefined;

  /** @throws InvalidConfigError when the options cannot be used */
  constructor({ checkAddresses = true, ...connection }: PayoutProducerOptions, control?: ProducerControl) {
    this.#checksums = checkAddresses;
    this.#control = control;
    this.#account = openLedger(connection);
  }

  /**
   * Accepts a payout. The same payoutId with the same data is the same payout, however often and from wherever it is
   * given, so a call whose outcome is unclear is simply made again. With a `signingKey` that renews the signature, as long as
   * no send was begun. A payout that has a signature (`key`, `signature`, `issuedAt`, `expiresAt`) keeps it.
   *
   * It returns once the ledger has the payout. The job that has it sent follows within some tens of milliseconds, in the order
   * of the calls. A process that ends before loses nothing: the worker that holds the lease finds the payout in the outbox
   * and adds the job, some four seconds after the call at the latest.
   * @throws InvalidInputError naming field, rule and value; ConflictError when the payoutId is there with other data,
   * naming the fields; RedisUnavailableError; ClosedError
   */
  async enqueue(input: PayoutInput): Promise<EnqueuedPayout> {
    this.#use();
    const payout = parsePayout(input, { checksums: this.#checksums });
    const intake = await this.#openIntake();
    this.#checkCurrency(payout);
    return toEnqueuedPayout(await intake.enqueue(this.#control?.sign(payout) ?? payout));
  }

  /**
   * Accepts many payouts, as if each were given to `enqueue` in turn, but faster and with conflicts as values. It returns once
   * their jobs were added as well, or are left to the worker.
   * @throws InvalidInputError when any payout breaks a rule, naming each as `[3].amount`; nothing is enqueued then
   * @throws RedisUnavailableError when Redis became unavailable; some payouts may have been accepted, and asking again is safe
   * @throws Error also where somebody damaged the record of one of them in Redis; it is the same with those
   */
  async enqueueMany(inputs: readonly PayoutInput[]): Promise<BulkEnqueue> {
    this.#use();
    const payouts = parsePayouts(inputs, { checksums: this.#checksums }, this.#control);
    const intake = await this.#openIntake();
    checkEach(payouts, (payout) => {
      this.#checkCurrency(payout);
    });
    const results: EnqueueResult[] = [];
    for await (const chunk of intake.enqueueChunks(inChunks(payouts), this.#control)) results.push(...chunk);
    return toBulkEnqueue(results);
  }

  /** One payout with its history, or undefined. @throws RedisUnavailableError */
  async get(payoutId: string): Promise<Payout | undefined> {
    return this.#read(payoutId);
  }

  /** The payout that has this transaction, or undefined. @throws InvalidInputError, RedisUnavailableError */
  async getByTxhash(txhash: string): Promise<Payout | undefined> {
    const { ledger } = this.#use();
    const payoutId = await ledger.findByTxhash(parseInput(txhashField, txhash));
    return payoutId === undefined ? undefined : this.#read(payoutId);
  }

  /** One page of the payouts in a state, or in a batch. @throws InvalidInputError, RedisUnavailableError */
  async list(options: ListOptions): Promise<PayoutPage> {
    const { payouts, next } = await listPayouts(this.#use().ledger.connection, parseInput(listSchema, options));
    return { payouts: payouts.map((payout) => this.#verified(payout)), next };
  }

  /** The account at a glance: payouts by state, the pause, the sender. @throws RedisUnavailableError */
  async stats(): Promise<AccountStats> {
    return readAccountStats(this.#use().ledger.connection);
  }

  /** The payouts of a batch by state. @throws InvalidInputError, NotFoundError, RedisUnavailableError */
  async batchStats(batch: string): Promise<BatchStats> {
    return readBatchStats(this.#use().ledger.connection, parseInput(batchField, batch));
  }

  /**
   * Cancels a payout that is still queued or held, or gives up one that was rejected.
   * @param options - who cancels it and why, as its history will tell
   * @returns the cancelled payout
   * @throws NotFoundError
   * @throws ConflictError when it is neither queued, held nor rejected, naming its state
   * @throws RedisUnavailableError when it may or may not have happened: asked again, a ConflictError that names `cancelled`
   * says that it had
   */
  async cancel(payoutId: string, options: { readonly by?: string; readonly reason?: string } = {}): Promise<Payout> {
    const account = this.#use();
    const actor = parseInput(cancelSchema, options);
    const intake = await this.#opening;
    return cancelPayout(account, payoutId, actor, async () => intake?.settled());
  }

  /**
   * Waits until a payout is completed, failed, held, rejected, unknown or cancelled: final, or in need of somebody. One that a policy
   * holds until a time, and that needs no approval, is sent by itself: that is waited for.
   * @param options - `timeoutMs`: how long at most
   * @returns the payout in that state
   * @throws WaitTimeoutError saying the state it is in; NotFoundError; ClosedError
   */
  async waitFor(payoutId: string, options: { readonly timeoutMs: number }): Promise<Payout> {
    const { ledger, clock } = this.#use();
    const { timeoutMs } = parseInput(waitSchema, options);
    const closed = this.#closed.signal;
    return this.#verified(await waitForPayout((wanted) => ledger.get(wanted), { payoutId, timeoutMs, clock, closed }));
  }

  /**
   * The account's events for an application that must not miss any: each at least once, all to one consumer of a group at
   * a time, in the order in which they happened. An event counts as handled when the loop asks for the next; after a
   * `break` or an error in the loop it comes again. When a consumer dies, another continues after `claimAfterMs` with the
   * event that was in its hands. An unavailable Redis is waited for.
   * @example
   * for await (const event of producer.events({ group: 'ledger', consumer: hostname() })) await book(event);
   * @throws InvalidInputError, ClosedError
   */
  events(options: EventsOptions): AsyncGenerator<PayoutEvent, void, undefined> {
    const { ledger } = this.#use();
    const settings = parseInput(eventsSchema, options);
    return readGroupEvents(ledger.connection, settings, this.#closed.signal);
  }

  /**
   * Calls a listener whenever a payout comes into a state, or the account is `paused`, `resumed` or `ledger_adopted` (see
   * {@link PayoutEventType}), from now until the producer is closed. For screens and logs: what happens while this process is down is missed.
   * @throws ClosedError
   */
  on(name: PayoutEventName, listener: PayoutEventListener): this {
    const { ledger, logger } = this.#use();
    this.#listeners ??= new EventListeners(ledger.connection, logger, this.#closed.signal);
    this.#listeners.on(name, listener);
    return this;
  }

  /** Calls the listener no more. */
  off(name: PayoutEventName, listener: PayoutEventListener): this {
    this.#listeners?.off(name, listener);
    return this;
  }

  /**
   * Adds the jobs of the payouts that were accepted, and ends the connection that the producer opened. It waits for a slow or
   * unavailable Redis for some seconds at most: what is left is in the outbox. Safe to call twice.
   */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await (await this.#opening?.catch(() => undefined))?.close();
    await this.#account.close();
  }

  /** Checks what only the currency tells of an address. The list is read again beside the calls, which stay in their order. */
  #checkCurrency(payout: NewPayout): void {
    if (!this.#checksums || !needsCurrencies(payout)) return;
    checkRecipient(payout, { checksums: true, currencies: this.#currencies });
    if (this.#account.clock.now() > this.#readCurrenciesAt) this.#readCurrencies().catch(() => undefined);
  }

  async #readCurrencies(): Promise<void> {
    const { ledger, clock } = this.#account;
    this.#readCurrenciesAt = clock.now() + KEEP_CURRENCIES_MS;
    this.#currencies = (await readGatewayFacts(ledger.connection)).currencies;
  }

  async #openIntake(): Promise<PayoutIntake> {
    return (this.#opening ??= this.#open());
  }

  async #open(): Promise<PayoutIntake> {
    try {
      if (this.#checksums) await this.#readCurrencies();
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
