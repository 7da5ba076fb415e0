import type { Payout } from '../../../src/ledger/payout.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import type { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { Payment } from '../../../src/sandbox/sandbox-account.js';
import type { Operator } from './operator.js';

/** What waits for an operator. */
const UNDECIDED = ['unknown', 'rejected', 'held'] as const satisfies readonly PayoutState[];

/** By then a request that was written has arrived, however late. */
const CERTAIN_AFTER_MS = 3_000;

export interface DecisionsOptions {
  readonly producer: PayoutProducer;
  readonly operator: Operator;
  /** What the gateway's support tells. */
  readonly readPayments: () => Promise<readonly Payment[]>;
  /** Payouts that are left as they are. */
  readonly ignored: readonly string[];
  /** The first payout that is to be sent again is so without a signature: the worker has to hold it. */
  readonly forgetsKey: boolean;
}

interface Sight {
  readonly situation: string;
  readonly since: number;
}

/** An operator who asks the gateway about each payout that nobody else can decide, and signs what he states. */
export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #seen = new Map<string, Sight>();
  #forgetsKey: boolean;
  /** What was to be sent again without a signature. */
  readonly unsigned = new Set<string>();

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#forgetsKey = options.forgetsKey;
  }

  /** Decides what has been the same for long enough. @throws RedisUnavailableError */
  async decide(): Promise<void> {
    const { producer, ignored, readPayments } = this.#options;
    const pages = await Promise.all(UNDECIDED.map(async (state) => producer.list({ state })));
    const undecided = pages.flatMap(({ payouts }) => payouts).filter(({ payoutId }) => !ignored.includes(payoutId));
    const certain = undecided.filter((payout) => this.#isCertain(payout));
    if (certain.length === 0) return;
    const payments = await readPayments();
    for (const payout of certain) await this.#decideOne(payout, payments);
  }

  #isCertain({ payoutId, state, attempt, updatedAt }: Payout): boolean {
    const situation = `${state} ${attempt} ${updatedAt}`;
    const seen = this.#seen.get(payoutId);
    if (seen?.situation === situation) return performance.now() - seen.since >= CERTAIN_AFTER_MS;
    this.#seen.set(payoutId, { situation, since: performance.now() });
    return false;
  }

  async #decideOne({ payoutId, state, addressTo, held }: Payout, payments: readonly Payment[]): Promise<void> {
    const { operator } = this.#options;
    const paid = payments.find((payment) => payment.addressTo === addressTo);
    if (state === 'unknown' && paid !== undefined) {
      await operator.decide(`payouts resolve ${payoutId} --sent --txhash ${paid.txhash}`, 'unsigned');
    } else if (paid === undefined) {
      const command = { unknown: 'resolve --not-sent', rejected: 'retry', held: 'release' }[state as 'held'];
      const needsKey = held === undefined || held.reason === 'sent_before';
      // An operator who forgets the key needs it for the release.
      const isForgotten = state !== 'held' && this.#forgetsKey;
      if (isForgotten) this.unsigned.add(payoutId);
      if (isForgotten) this.#forgetsKey = false;
      const signing = isForgotten ? 'forgotten' : needsKey ? 'signed' : 'unsigned';
      await operator.decide(`payouts ${command} ${payoutId}`, signing);
    }
    // What was refused is tried again, and what comes back is looked at again.
    this.#seen.delete(payoutId);
  }
}
