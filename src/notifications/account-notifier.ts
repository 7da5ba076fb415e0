import { RedisUnavailableError } from '../base/errors.js';
import { every, isAborted, type Clock } from '../base/clock.js';
import { readGatewayFacts } from '../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { NOTIFY_GROUP, startNotifyGroup } from '../ledger/reads/state-events.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Logger } from '../base/logger.js';
import { eventsSchema, readGroupEvents } from '../producer/events/event-group.js';
import type { PayoutEvent, PayoutEventName } from '../producer/events/payout-events.js';
import { formatRequest, postRequest, type Receiver } from './post-request.js';
import { RetryTurns } from './retry-turns.js';
import { describeEvent, linkRunbook, nameOf, type Notification, parseEventNames } from './notification.js';

export interface NotifierObserver {
  /** It read the account's events, or tried to deliver one. */
  worked(): void;
  delivered(): void;
  /** @param reason - without a secret */
  failed(reason: string): void;
}

export interface NotifierOptions {
  readonly receiver: Receiver;
  /** Sets `Payout.verified`: whether the payout's state is signed. @defaultValue unset */
  readonly verify?: (platformId: number, payout: Payout) => Payout;
  /** As `NOTIFY_EVENTS`. */
  readonly events: string;
  readonly timeoutMs: number;
  /** @defaultValue runbooks are named by their path */
  readonly dashboardUrl?: string | undefined;
  readonly observe: (platformId: number) => NotifierObserver;
  readonly logger: Logger;
}

/** Reads events of a busy account together, to save Redis work. Readers of a chat do not notice. */
const LINGER_MS = 2_000;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 300_000;
/** Retry delay after an unavailable Redis or a refused read. */
const REDIS_RETRY_MS = 5_000;

/**
 * Posts an account's chosen events in order, each until it is delivered. Only then is an event acknowledged in Redis,
 * so a crash loses none. It may deliver the current one twice.
 */
export class AccountNotifier {
  readonly #ledger: PayoutLedger;
  readonly #connection: LedgerConnection;
  readonly #clock: Clock;
  readonly #options: NotifierOptions;
  readonly #events: ReadonlySet<PayoutEventName>;
  readonly #observer: NotifierObserver;
  readonly #logger: Logger;
  readonly #stop: AbortSignal;
  readonly #turns: RetryTurns;

  /**
   * @param stop - ends it after the attempt that is under way
   * @param turns - of all accounts with this receiver
   * @throws InvalidConfigError if `events` names an unknown one
   */
  constructor(
    ledger: PayoutLedger,
    options: NotifierOptions,
    stop: AbortSignal,
    turns = new RetryTurns(ledger.connection.clock),
  ) {
    const { platformId, clock } = ledger.connection;
    this.#ledger = ledger;
    this.#connection = ledger.connection;
    this.#clock = clock;
    this.#options = options;
    this.#events = parseEventNames(options.events);
    this.#observer = options.observe(platformId);
    this.#logger = options.logger.child({ platformId });
    this.#stop = stop;
    this.#turns = turns;
  }

  async run(): Promise<void> {
    const followEvents = async (): Promise<void> => {
      await startNotifyGroup(this.#connection);
      await this.#followEvents();
    };
    const onError = ({ message }: Error): void => {
      this.#logger.warn({ error: message }, 'notifications wait for Redis');
      this.#observer.failed(`Redis: ${message}`);
    };
    await every(REDIS_RETRY_MS, followEvents, { clock: this.#clock, signal: this.#stop, onError });
  }

  async #followEvents(): Promise<void> {
    const isWanted = (event: PayoutEvent): boolean => {
      const name = nameOf(event);
      return name !== undefined && this.#events.has(name);
    };
    const settings = eventsSchema.parse({ group: NOTIFY_GROUP });
    const selection = {
      isWanted,
      lingerMs: LINGER_MS,
      onRead: () => {
        this.#observer.worked();
      },
    };
    for await (const event of readGroupEvents(this.#connection, settings, this.#stop, this.#logger, selection)) {
      const type = nameOf(event);
      if (type === undefined) continue;
      const notification = linkRunbook(await this.#describe(event, type), this.#options.dashboardUrl);
      // Stays pending in the group: it is delivered after the next start.
      if (!(await this.#deliver(notification))) break;
    }
  }

  async #describe(event: PayoutEvent, type: PayoutEventName): Promise<Notification> {
    const { platformId } = this.#connection;
    const { payoutId } = event;
    if (payoutId === undefined) return describeEvent(platformId, event, type, undefined);
    // One record that cannot be read must not keep back what comes after it.
    const leaveOut = (error: unknown): undefined => {
      if (error instanceof RedisUnavailableError) throw error;
      this.#logger.error({ payoutId, error: (error as Error).message }, 'told without what cannot be read');
      return undefined;
    };
    const [payout, facts] = await Promise.all([
      this.#ledger.get(payoutId).catch(leaveOut),
      readGatewayFacts(this.#connection).catch(leaveOut),
    ]);
    const { currencies = [] } = facts ?? {};
    const { verify = (_: number, given: Payout): Payout => given } = this.#options;
    return describeEvent(platformId, event, type, payout && verify(platformId, payout), currencies);
  }

  /** @returns false if it was stopped before the delivery */
  async #deliver(notification: Notification): Promise<boolean> {
    const { receiver, timeoutMs } = this.#options;
    const { id, type } = notification;
    for (let attempt = 1; ; attempt += 1) {
      const request = formatRequest(receiver, notification, Math.floor(this.#clock.wallNow() / 1_000));
      const outcome = await postRequest(receiver.url, request, timeoutMs);
      this.#observer.worked();
      if (outcome.kind === 'delivered') {
        this.#observer.delivered();
        this.#turns.delivered();
        this.#logger.info({ id, type, attempt }, 'notification delivered');
        return true;
      }
      const { reason, isRefused, retryAfterMs } = outcome;
      // What it refuses would be refused a second later too. What it did not answer is a question whether it is back.
      const ownMs = isRefused ? backOffMs(attempt) : this.#turns.takeTurn();
      const waitMs = Math.min(RETRY_MAX_MS, Math.max(retryAfterMs ?? 0, ownMs));
      this.#observer.failed(reason);
      // An outage of hours is not a line a second.
      this.#logger[Number.isInteger(Math.log2(attempt)) ? 'warn' : 'debug'](
        { id, type, attempt, error: reason, retryInMs: Math.round(waitMs) },
        'notification not delivered',
      );
      if (retryAfterMs === undefined) await this.#turns.wait(waitMs, this.#stop);
      else await this.#clock.sleep(waitMs, this.#stop);
      if (isAborted(this.#stop)) return false;
    }
  }
}

/** Doubles from a second to five minutes, less up to a fifth, so that retries to a receiver spread out. */
function backOffMs(attempt: number): number {
  return Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (attempt - 1)) * (1 - Math.random() / 5);
}
