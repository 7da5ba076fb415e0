import type { SpendEvent } from '../ledger/spend-event.js';
import { identify, type OutcomeLine, type SendLine } from './journal-line.js';

export class SpendLog {
  #events: SpendEvent[] = [];

  noteSend(line: SendLine): void {
    const { payoutId, attempt, request, signed, judged, at } = line;
    const { paymentId, amount, addressTo } = request;
    const usd = judged?.usd === undefined ? undefined : BigInt(judged.usd);
    const spend = { id: identify(line), payoutId, attempt, paymentId, amount, addressTo, signer: signed?.key, usd };
    this.#events.push({ kind: 'begun', spend, at });
  }

  noteOutcome(line: OutcomeLine): void {
    const id = identify(line);
    const { outcome, at } = line;
    if (outcome.kind === 'accepted') this.#events.push({ kind: 'accepted', id, at });
    // `unknown` counts as a send without an answer.
    else if (outcome.kind !== 'unknown') this.#events.push({ kind: 'unpaid', id });
  }

  take(): readonly SpendEvent[] {
    const taken = this.#events;
    this.#events = [];
    return taken;
  }
}
