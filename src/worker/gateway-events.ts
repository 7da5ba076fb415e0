import { gatewayIdKey } from '../base/fields.js';
import { describeFailure, type EventMessage, type Gateway } from '../gateway/gateway.js';
import type { AccountRuntime } from './account-runtime.js';

/**
 * What became of a message of the gateway.
 *
 * - `heeded`: the next poll of its payout is due now.
 * - `repeated`: another came for the same payment within {@link SPACING_MS}; they count as one.
 * - `settled`: its payout is not in progress.
 * - `unknown`: no payout has this payment, or not yet.
 * - `unreadable`: the gateway signed it, and it names no payment.
 * - `forged`: the gateway did not sign these bytes.
 * - `unavailable`: Redis did not answer.
 */
export const EVENT_RESULTS = [
  ...(['heeded', 'repeated', 'settled', 'unknown', 'unreadable', 'forged', 'unavailable'] as const),
] as const;

export type EventResult = (typeof EVENT_RESULTS)[number];

type Needed = Pick<AccountRuntime, 'ledger' | 'queues' | 'clock' | 'logger'>;

type ReadEvent = NonNullable<Gateway['readEvent']>;

/** At most so often the poll of one payment is brought forward, in ms. */
const SPACING_MS = 1_000;

/**
 * Takes what the gateway sends about the payments of one account, as a hint when to ask. It believes nothing of it and
 * changes no payout: the poll asks the gateway, and within the limit of polls.
 */
export class GatewayEvents {
  readonly #runtime: Needed;
  readonly #readEvent: ReadEvent;
  /** Payments whose last message is less than {@link SPACING_MS} old; true if they are looked at once more then. */
  readonly #recent = new Map<string, boolean>();
  readonly #stop = new AbortController();

  private constructor(runtime: Needed, readEvent: ReadEvent) {
    this.#runtime = runtime;
    this.#readEvent = readEvent;
  }

  /** @returns undefined if the gateway sends nothing */
  static of(runtime: Needed & Pick<AccountRuntime, 'gateway'>): GatewayEvents | undefined {
    const { gateway } = runtime;
    return gateway.readEvent && new GatewayEvents(runtime, gateway.readEvent.bind(gateway));
  }

  /** Never throws. */
  async take(message: EventMessage): Promise<EventResult> {
    const reading = this.#readEvent(message);
    return reading.kind === 'payment' ? this.#hear(reading.gatewayId) : reading.kind;
  }

  /** Messages that wait for their second are forgotten. Safe to call twice. */
  close(): void {
    this.#stop.abort();
  }

  async #hear(gatewayId: string): Promise<EventResult> {
    const key = gatewayIdKey(gatewayId);
    if (this.#recent.has(key)) {
      this.#recent.set(key, true);
      return 'repeated';
    }
    this.#recent.set(key, false);
    const found = await this.#look(gatewayId);
    if (found === 'unavailable') this.#recent.delete(key);
    else void this.#lookAgain(gatewayId, key);
    if (found !== 'not_waiting') return found;
    this.#recent.set(key, true);
    return 'heeded';
  }

  /** After the second: a flood of messages about one payment is one look a second. */
  async #lookAgain(gatewayId: string, key: string): Promise<void> {
    const { clock } = this.#runtime;
    for (;;) {
      await clock.sleep(SPACING_MS, this.#stop.signal);
      if (this.#recent.get(key) !== true || this.#stop.signal.aborted) break;
      this.#recent.set(key, false);
      await this.#look(gatewayId);
    }
    this.#recent.delete(key);
  }

  /**
   * @returns `not_waiting` if it should look once more: a poll that runs may have asked before the gateway knew what its
   * message says, and a payout of this moment has no job yet
   */
  async #look(gatewayId: string): Promise<'heeded' | 'not_waiting' | 'settled' | 'unknown' | 'unavailable'> {
    const { ledger, queues, logger } = this.#runtime;
    try {
      const payoutId = await ledger.findByGatewayId(gatewayId);
      const payout = payoutId === undefined ? undefined : await ledger.get(payoutId);
      if (payout === undefined) return 'unknown';
      if (payout.state !== 'in_progress') return 'settled';
      return (await queues.bringPollForward(payout)) ? 'heeded' : 'not_waiting';
    } catch (error) {
      logger.debug({ error: describeFailure(error) }, 'a message of the gateway could not be looked up');
      return 'unavailable';
    }
  }
}
