import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { every, isAborted, type Clock } from '../base/clock.js';
import { readGatewayFacts } from '../ledger/gateway-facts.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { NOTIFY_GROUP, startNotifyGroup } from '../ledger/state-events.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Logger } from '../base/logger.js';
import { eventsSchema, readGroupEvents } from '../producer/events/event-group.js';
import type { PayoutEvent, PayoutEventName } from '../producer/events/payout-events.js';
import { formatRequest, postRequest, type Receiver } from './post-request.js';
import { describeEvent, nameOf, type Notification } from './notification.js';

/** What a notifier tells of its attempts, for metrics. */
export interface NotifierObserver {
  delivered(): void;
  /** @param reason - without a secret */
  failed(reason: string): void;
}

interface AccountNotifierOptions {
  readonly ledger: PayoutLedger;
  readonly receiver: Receiver;
  /** See `NotifierOptions`. */
  readonly verify?: ((payout: Payout) => Payout) | undefined;
  readonly events: ReadonlySet<PayoutEventName>;
  /** Time limit of one attempt. */
  readonly timeoutMs: number;
  readonly observer: NotifierObserver;
  readonly logger: Logger;
}

/** Events of a busy account are read together: Redis has less to do, and nobody reads a chat faster. */
const LINGER_MS = 2_000;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 300_000;
/** Redis, or the right to read from it, is tried again after this time. */
const REDIS_RETRY_MS = 5_000;

/**
 * Posts the chosen events of an account, one after the other, each until it is delivered. An event is acknowledged in Redis
 * only after that, so a process that dies loses none; the one it had in hand may be delivered again.
 */
export class AccountNotifier {
  readonly #options: AccountNotifierOptions;
  readonly #connection: LedgerConnection;
  readonly #clock: Clock;
  readonly #stop: AbortSignal;

  /** @param stop - ends it after the attempt that is under way */
  constructor(options: AccountNotifierOptions, stop: AbortSignal) {
    this.#options = options;
    this.#connection = options.ledger.connection;
    this.#clock = this.#connection.clock;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    const followEvents = async (): Promise<void> => {
      await startNotifyGroup(this.#connection);
      await this.#followEvents();
    };
    const onError = ({ message }: Error): void => {
      this.#options.logger.warn({ error: message }, 'notifications wait for Redis');
      this.#options.observer.failed(`Redis: ${message}`);
    };
    await every(REDIS_RETRY_MS, followEvents, { clock: this.#clock, signal: this.#stop, onError });
  }

  async #followEvents(): Promise<void> {
    const { events } = this.#options;
    const consumer = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
    const isWanted = (event: PayoutEvent): boolean => {
      const name = nameOf(event);
      return name !== undefined && events.has(name);
    };
    const settings = eventsSchema.parse({ group: NOTIFY_GROUP, consumer });
    const selection = { isWanted, lingerMs: LINGER_MS };
    for await (const event of readGroupEvents(this.#connection, settings, this.#stop, selection)) {
      const type = nameOf(event);
      if (type === undefined) continue;
      const notification = await this.#describe(event, type);
      // Left in the hands of the group: it is delivered after the next start.
      if (!(await this.#deliver(notification))) break;
    }
  }

  async #describe(event: PayoutEvent, type: PayoutEventName): Promise<Notification> {
    const { platformId } = this.#connection;
    const { payoutId } = event;
    if (payoutId === undefined) return describeEvent(platformId, event, type, undefined);
    const [payout, { currencies }] = await Promise.all([
      this.#options.ledger.get(payoutId),
      readGatewayFacts(this.#connection),
    ]);
    const { verify = (given: Payout): Payout => given } = this.#options;
    return describeEvent(platformId, event, type, payout && verify(payout), currencies);
  }

  /** @returns false when it was stopped before it could deliver */
  async #deliver(notification: Notification): Promise<boolean> {
    const { receiver, timeoutMs, observer, logger } = this.#options;
    const { id, type } = notification;
    for (let attempt = 1; ; attempt += 1) {
      const request = formatRequest(receiver, notification, Math.floor(this.#clock.wallNow() / 1_000));
      const outcome = await postRequest(receiver.url, request, timeoutMs);
      if (outcome.kind === 'delivered') {
        observer.delivered();
        logger.info({ id, type, attempt }, 'notification delivered');
        return true;
      }
      const { reason, retryAfterMs = 0 } = outcome;
      const waitMs = Math.min(RETRY_MAX_MS, Math.max(retryAfterMs, backOffMs(attempt)));
      observer.failed(reason);
      logger.warn({ id, type, attempt, error: reason, retryInMs: Math.round(waitMs) }, 'notification not delivered');
      await this.#clock.sleep(waitMs, this.#stop);
      if (isAborted(this.#stop)) return false;
    }
  }
}

/** Doubles from a second to five minutes, less up to a fifth: receivers that return are not met by all at once. */
function backOffMs(attempt: number): number {
  return Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (attempt - 1)) * (1 - Math.random() / 5);
}
