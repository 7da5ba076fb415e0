import { isAborted } from '../../base/clock.js';
import { NotFoundError, StoppedError } from '../../base/errors.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { listPayouts, readEach, type UnreadablePayout } from '../../ledger/payout-queries.js';
import type { PayoutState } from '../../ledger/states.js';
import { CurrencyTotals, type CurrencyTotal } from '../import/currency-totals.js';
import type { SelectedPayout } from './read-selection-file.js';

export type Selection =
  | { readonly kind: 'named'; readonly payouts: readonly SelectedPayout[] }
  | { readonly kind: 'batch'; readonly batch: string }
  | { readonly kind: 'all' };

export interface Choice {
  readonly from: readonly PayoutState[];
  /** @defaultValue all */
  readonly matches?: (payout: Payout) => boolean;
  /** A second run must not repeat the change. */
  readonly wasChanged: (payout: Payout) => boolean;
  /** Why a row is not about the payout as it is now. @defaultValue each is */
  readonly findStale?: (selected: SelectedPayout, payout: Payout) => string | undefined;
}

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
  /** Why rows are refused that are about an earlier attempt, or about a payout whose record cannot be read. */
  readonly stale: readonly string[];
}

/**
 * @param onProgress - called with the number of payouts read
 * @throws NotFoundError if the batch is empty
 */
export async function surveyPayouts(
  connection: LedgerConnection,
  selection: Selection,
  { from, matches = () => true, wasChanged, findStale }: Choice,
  signal: AbortSignal,
  onProgress: (payouts: number) => void,
): Promise<Survey> {
  const chosen = new Map<string, ChosenPayout>();
  const totals = new CurrencyTotals();
  const others: Partial<Record<PayoutState, number>> = {};
  const missing: SelectedPayout[] = [];
  const stale: string[] = [];
  let [read, changedBefore] = [0, 0];
  for await (const page of readSelected(connection, selection, from)) {
    if (isAborted(signal)) throw new StoppedError('Stopped while counting; nothing was changed');
    for (const [selected, payout] of page) {
      // A payout that changes its state meanwhile may come twice.
      if (chosen.has(selected.payoutId)) continue;
      if (payout === undefined) missing.push(selected);
      else if ('reason' in payout) stale.push(payout.reason);
      else if (!from.includes(payout.state)) others[payout.state] = (others[payout.state] ?? 0) + 1;
      else if (!matches(payout)) continue;
      else if (findStale?.(selected, payout) !== undefined) stale.push(findStale(selected, payout) ?? '');
      else if (wasChanged(payout)) changedBefore += 1;
      else {
        chosen.set(selected.payoutId, { ...selected, state: payout.state, attempt: payout.attempt });
        totals.add(payout);
      }
    }
    onProgress((read += page.length));
  }
  if (selection.kind === 'batch' && read === 0) throw new NotFoundError(`Batch ${selection.batch} not found`);
  return { chosen: [...chosen.values()], totals: totals.list(), changedBefore, others, missing, stale };
}

type Found = readonly [selected: SelectedPayout, payout: Payout | UnreadablePayout | undefined];

const PAGE_SIZE = 500;

async function* readSelected(
  connection: LedgerConnection,
  selection: Selection,
  states: readonly PayoutState[],
): AsyncGenerator<readonly Found[]> {
  if (selection.kind === 'batch') yield* readIndex(connection, { batch: selection.batch });
  else if (selection.kind === 'all') for (const state of states) yield* readIndex(connection, { state });
  else {
    for (let start = 0; start < selection.payouts.length; start += PAGE_SIZE) {
      const page = selection.payouts.slice(start, start + PAGE_SIZE);
      const payoutIds = page.map(({ payoutId }) => payoutId);
      const { payouts, unreadable } = await readEach(connection, payoutIds);
      const found = new Map([...payouts, ...unreadable].map((payout) => [payout.payoutId, payout]));
      yield page.map((selected): Found => [selected, found.get(selected.payoutId)]);
    }
  }
}

async function* readIndex(
  connection: LedgerConnection,
  index: { readonly state: PayoutState } | { readonly batch: string },
): AsyncGenerator<readonly Found[]> {
  let cursor: { readonly cursor?: string } | undefined = {};
  while (cursor !== undefined) {
    const { payouts, unreadable, next } = await listPayouts(connection, { ...index, ...cursor, limit: PAGE_SIZE });
    yield [...payouts, ...unreadable].map((payout): Found => [{ payoutId: payout.payoutId }, payout]);
    cursor = next === undefined ? undefined : { cursor: next };
  }
}
