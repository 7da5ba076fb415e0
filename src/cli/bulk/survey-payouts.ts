import { isAborted } from '../../base/clock.js';
import { NotFoundError, StoppedError } from '../../base/errors.js';
import { listPayouts, readPayouts } from '../../ledger/reads/payout-queries.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import { CurrencyTotals, type CurrencyTotal } from '../import/currency-totals.js';
import type { SelectedPayout } from './read-selection-file.js';

export type Selection =
  | { readonly kind: 'named'; readonly payouts: readonly SelectedPayout[] }
  | { readonly kind: 'batch'; readonly batch: string }
  | { readonly kind: 'all' };

/** As it was when the operator decided. */
export interface ChosenPayout extends SelectedPayout {
  readonly state: PayoutState;
  readonly attempt: number;
}

export interface Survey {
  readonly chosen: readonly ChosenPayout[];
  readonly totals: readonly CurrencyTotal[];
  /** Payouts changed before and in the state again: the same command must not repeat it. */
  readonly changedBefore: number;
  /** Payouts in other states, which stay as they are. */
  readonly others: Readonly<Partial<Record<PayoutState, number>>>;
  readonly missing: readonly SelectedPayout[];
}

interface SurveyOptions {
  readonly connection: LedgerConnection;
  readonly from: readonly PayoutState[];
  readonly matches: (payout: Payout) => boolean;
  readonly wasChanged: (payout: Payout) => boolean;
  /** Called now and then with the number of payouts read. */
  readonly onProgress: (payouts: number) => void;
  readonly signal: AbortSignal;
}

const PAGE_SIZE = 500;

/** @throws NotFoundError if the batch is empty */
export async function surveyPayouts(selection: Selection, options: SurveyOptions): Promise<Survey> {
  const tally = new Tally(options);
  if (selection.kind === 'named') await surveyNamed(selection.payouts, tally, options);
  else if (selection.kind === 'batch') {
    const count = await surveyIndex({ batch: selection.batch }, tally, options);
    if (count === 0) throw new NotFoundError(`Batch ${selection.batch} not found`);
  } else {
    let count = 0;
    for (const state of options.from) count += await surveyIndex({ state }, tally, options, count);
  }
  return tally.result();
}

async function surveyNamed(
  selected: readonly SelectedPayout[],
  tally: Tally,
  { connection, onProgress, signal }: SurveyOptions,
): Promise<void> {
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
}

async function surveyIndex(
  index: { readonly state: PayoutState } | { readonly batch: string },
  tally: Tally,
  { connection, onProgress, signal }: SurveyOptions,
  before = 0,
): Promise<number> {
  let cursor: { readonly cursor?: string } | undefined = {};
  let count = 0;
  while (cursor !== undefined) {
    refuseStopped(signal);
    const { payouts, next } = await listPayouts(connection, { ...index, ...cursor, limit: PAGE_SIZE });
    for (const payout of payouts) tally.add({ payoutId: payout.payoutId }, payout);
    count += payouts.length;
    onProgress(before + count);
    cursor = next === undefined ? undefined : { cursor: next };
  }
  return count;
}

function refuseStopped(signal: AbortSignal): void {
  if (isAborted(signal)) throw new StoppedError('Stopped while counting; nothing was changed');
}

class Tally {
  readonly #options: SurveyOptions;
  readonly #chosen = new Map<string, ChosenPayout>();
  readonly #totals = new CurrencyTotals();
  readonly #others: Partial<Record<PayoutState, number>> = {};
  readonly #missing: SelectedPayout[] = [];

  #changedBefore = 0;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  add(selected: SelectedPayout, payout: Payout | undefined): void {
    const { from, matches, wasChanged } = this.#options;
    // A payout that changes its state meanwhile may come twice.
    if (this.#chosen.has(selected.payoutId)) return;
    if (payout === undefined) this.#missing.push(selected);
    else if (!from.includes(payout.state)) this.#others[payout.state] = (this.#others[payout.state] ?? 0) + 1;
    else if (!matches(payout)) return;
    else if (wasChanged(payout)) this.#changedBefore += 1;
    else {
      this.#chosen.set(selected.payoutId, { ...selected, state: payout.state, attempt: payout.attempt });
      this.#totals.add(payout);
    }
  }

  result(): Survey {
    return {
      chosen: [...this.#chosen.values()],
      totals: this.#totals.list(),
      changedBefore: this.#changedBefore,
      others: this.#others,
      missing: this.#missing,
    };
  }
}
