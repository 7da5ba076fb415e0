import { isSameTxhash } from '../../fields.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import { describeOutcome } from './compare-send.js';
import type { Finding } from './finding.js';

/** Which attempts of a payout the gateway accepted, as the journals alone have it: its record may be gone, or altered. */
export class PaidAttempts {
  readonly #accepted = new Map<string, JournalEntry[]>();

  /** @param send - of a payout with several attempts */
  note(send: JournalEntry): void {
    if (send.outcome?.kind !== 'accepted') return;
    this.#accepted.set(send.payoutId, [...(this.#accepted.get(send.payoutId) ?? []), send]);
  }

  /** Of each payout that was accepted with several transactions, one for every attempt but the last. */
  findings(): Finding[] {
    return [...this.#accepted.values()].flatMap((sends) => {
      const last = sends.reduce((newest, send) => (send.at > newest.at ? send : newest));
      return sends
        .filter((send) => !isSameTxhash(txhashOf(send), txhashOf(last)))
        .map((send) => ({
          ...{ payoutId: send.payoutId, attempt: send.attempt, kind: 'sent_again' },
          message: `the journal says of attempt ${send.attempt} ${describeOutcome(send)}, and of attempt ${last.attempt} ${describeOutcome(last)}`,
          action: 'It may have been paid twice: ask the gateway for both.',
        }));
    });
  }
}

function txhashOf({ outcome }: JournalEntry): string | undefined {
  return outcome?.kind === 'accepted' ? outcome.txhash : undefined;
}
