import { isAborted } from '../../clock.js';
import { StoppedError } from '../../errors.js';
import { listPayouts, readPayouts } from '../../ledger/payout-queries.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import { CurrencyTotals, type CurrencyTotal } from '../import/currency-totals.js';
import type { SelectedPayout } from './selection.js';

/** A payout that is to be changed, as it was when the operator decided. */
export interface ChosenPayout extends SelectedPayout {
  readonly attempt: number;
}

/** What a selection comes to. */
export interface Survey {
  /** Those in the state that the change begins from. */
  readonly chosen: readonly ChosenPayout[];
  readonly totals: readonly CurrencyTotal[];
  /** How many came into the state again after this very change: the same command must not make it twice. */
  readonly changedBefore: number;
  /** How many are in another state, which is left as it is. */
  readonly others: Readonly<Partial<Record<PayoutState, number>>>;
  /** Those that the ledger does not know. */
  readonly missing: readonly SelectedPayout[];
}

export interface SurveyOptions {
  readonly connection: LedgerConnection;
  readonly from: PayoutState;
  /** Whether this very change was made to a payout before. */
  readonly wasChanged: (payout: Payout) => boolean;
  /** Called now and then with the number of payouts looked at. */
  readonly onProgress: (payouts: number) => void;
  readonly signal: AbortSignal;
}

const PAGE_SIZE = 500;

/** Looks up what an operator has chosen. @throws RedisUnavailableError, StoppedError */
export async function surveyPayouts(selected: readonly SelectedPayout[], options: SurveyOptions): Promise<Survey> {
  const { connection, onProgress, signal } = options;
  const tally = new Tally(options);
  for (let start = 0; start < selected.length; start += PAGE_SIZE) {
    refuseStopped(signal);
    const page = selected.slice(start, start + PAGE_SIZE);
    const payouts = await readPayouts(
      connection,
      page.map(({ payoutId }) => payoutId),
    );
    const found = new Map(payouts.map((payout) => [payout.payoutId, payout]));
    for (const one of page) tally.add(one, found.get(one.payoutId));
    onProgress(start + page.length);
  }
  return tally.result();
}

/** Looks up all payouts that are in a state. @throws RedisUnavailableError, StoppedError */
export async function surveyState(options: SurveyOptions): Promise<Survey> {
  const { connection, from, onProgress, signal } = options;
  const tally = new Tally(options);
  let cursor: string | undefined;
  let count = 0;
  do {
    refuseStopped(signal);
    const page = await listPayouts(connection, {
      state: from,
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const payout of page.payouts) tally.add({ payoutId: payout.payoutId }, payout);
    count += page.payouts.length;
    onProgress(count);
    cursor = page.next;
  } while (cursor !== undefined);
  return tally.result();
}

function refuseStopped(signal: AbortSignal): void {
  if (isAborted(signal)) throw new StoppedError('Stopped while counting; nothing was changed');
}

class Tally {
  readonly #options: SurveyOptions;
  readonly #chosen: ChosenPayout[] = [];
  readonly #totals = new CurrencyTotals();
  readonly #others: Partial<Record<PayoutState, number>> = {};
  readonly #missing: SelectedPayout[] = [];

  #changedBefore = 0;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  add(selected: SelectedPayout, payout: Payout | undefined): void {
    const { from, wasChanged } = this.#options;
    if (payout === undefined) this.#missing.push(selected);
    else if (payout.state === from && wasChanged(payout)) this.#changedBefore += 1;
    else if (payout.state === from) {
      this.#chosen.push({ ...selected, attempt: payout.attempt });
      this.#totals.add(payout);
    } else this.#others[payout.state] = (this.#others[payout.state] ?? 0) + 1;
  }

  result(): Survey {
    return {
      chosen: this.#chosen,
      totals: this.#totals.list(),
      changedBefore: this.#changedBefore,
      others: this.#others,
      missing: this.#missing,
    };
  }
}
