import { setMaxListeners } from 'node:events';
import { type Clock, followSignals } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { hmacOf } from '../hmac.js';
import type { Payment, SandboxAccount } from '../sandbox-account.js';
import type { OpenPoints } from './open-points.js';

interface WebhookSettings {
  readonly settleAfterMs: number;
  readonly v2: Pick<OpenPoints, 'webhookUrl' | 'webhooks'>;
}

/** One that is not answered with 200 is sent twice more, then never. */
const TRIES = 3;
const TRY_AGAIN_AFTER_MS = 500;
const ANSWER_WITHIN_MS = 5_000;
const REPEATED_TIMES = 6;

/** The gateway's own messages about payments: signed as requests are, over the bytes of the body. */
export class Webhooks {
  readonly #settings: WebhookSettings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #closing = new AbortController();

  constructor(settings: WebhookSettings, clock: Clock, logger: Logger) {
    this.#settings = settings;
    this.#clock = clock;
    this.#logger = logger;
    setMaxListeners(0, this.#closing.signal);
  }

  /** A payment was made. Its response has not been sent. */
  paid(account: SandboxAccount, payment: Payment): void {
    const { settleAfterMs, v2 } = this.#settings;
    if (v2.webhookUrl === undefined || v2.webhooks === 'lost') return;
    if (v2.webhooks === 'early') void this.#send(account, payment, settleAfterMs > 0 ? 0 : payment.settlesAs);
    void this.#sendSettled(account, payment);
  }

  close(): void {
    this.#closing.abort();
  }

  async #sendSettled(account: SandboxAccount, payment: Payment): Promise<void> {
    const { settleAfterMs, v2 } = this.#settings;
    // A timer may fire a little early.
    await this.#clock.sleep(settleAfterMs + 2, this.#closing.signal);
    const times = v2.webhooks === 'repeated' ? REPEATED_TIMES : 1;
    const sent = Array.from({ length: times }, async () => this.#send(account, payment, payment.settlesAs));
    await Promise.all(sent);
  }

  async #send(account: SandboxAccount, payment: Payment, approve: 0 | 1 | 2): Promise<void> {
    const { platformId } = account;
    const { transactionId, orderId, paymentId, addressTo, amount, txhash } = payment;
    const body = Buffer.from(
      JSON.stringify({
        ...{ platformId, transactionId, orderId, paymentId, addressTo, amount, approve },
        txhash: approve === 1 ? txhash : '',
      }),
    );
    const isForged = this.#settings.v2.webhooks === 'forged';
    const signature = account.signWith((secretKey) => {
      const key = isForged ? `not ${secretKey}` : secretKey;
      return hmacOf(toSigned(String(platformId), body, key), key);
    });
    for (let tries = 1; tries <= TRIES && !this.#closing.signal.aborted; tries += 1) {
      const status = await this.#post(platformId, body, signature);
      this.#logger.debug({ platformId, transactionId, status }, 'webhook sent');
      if (status === 200) return;
      await this.#clock.sleep(TRY_AGAIN_AFTER_MS, this.#closing.signal);
    }
  }

  /** @returns undefined without a response */
  async #post(platformId: number, body: Buffer, signature: string): Promise<number | undefined> {
    const url = (this.#settings.v2.webhookUrl ?? '').replaceAll('PLATFORM_ID', String(platformId));
    const headers = { 'content-type': 'application/json', 'x-signature': signature };
    const turn = followSignals(this.#closing.signal, AbortSignal.timeout(ANSWER_WITHIN_MS));
    try {
      const message = { method: 'POST', headers, body: new Uint8Array(body), signal: turn.signal };
      const response = await fetch(url, message);
      await response.arrayBuffer();
      return response.status;
    } catch {
      return undefined;
    } finally {
      turn.end();
    }
  }
}

export function toSigned(platformId: string, body: Buffer, secretKey: string): Buffer {
  return Buffer.concat([Buffer.from(`${platformId};`), body, Buffer.from(`;${secretKey}`)]);
}
