import { NotFoundError, NotVerifiedError } from '../../base/errors.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import { toPlainText } from '../../base/plain-text.js';

export interface ChosenPayouts {
  readonly payouts: readonly Payout[];
  readonly unreadable: readonly NotVerifiedError[];
}

const PAGE_SIZE = 500;

/** Trusts Redis: nothing is verified here. */
export function waitsForApproval({ held }: Payout): boolean {
  return held?.needs !== undefined;
}

export function mayBeSent({ state }: Payout): boolean {
  return state === 'queued' || state === 'held';
}

export function isRejected({ held }: Payout): boolean {
  return held?.kind === 'rejection';
}

export async function readNamed(connection: LedgerConnection, payoutIds: readonly string[]): Promise<ChosenPayouts> {
  const payouts: Payout[] = [];
  const unreadable = new Map<string, NotVerifiedError>();
  const named = [...new Set(payoutIds)];
  for (let start = 0; start < named.length; start += PAGE_SIZE) {
    payouts.push(...(await readPage(connection, named.slice(start, start + PAGE_SIZE), unreadable)));
  }
  const found = new Set([...payouts.map(({ payoutId }) => payoutId), ...unreadable.keys()]);
  const missing = named.filter((payoutId) => !found.has(payoutId));
  if (missing.length > 0) throw new NotFoundError(`Payout ${missing.join(', ')} not found; nothing was changed`);
  return { payouts, unreadable: [...unreadable.values()] };
}

export async function readWaiting(
  connection: LedgerConnection,
  index: { readonly state: 'held' } | { readonly batch: string },
  isWanted: (payout: Payout) => boolean = waitsForApproval,
): Promise<ChosenPayouts> {
  const [payouts, unreadable] = [new Map<string, Payout>(), new Map<string, NotVerifiedError>()];
  let [count, cursor]: [number, string | undefined] = [0, undefined];
  do {
    const page = await listPayoutIds(connection, { ...index, limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) });
    count += page.payoutIds.length;
    for (const payout of await readPage(connection, page.payoutIds, unreadable)) {
      if (isWanted(payout)) payouts.set(payout.payoutId, payout);
    }
    cursor = page.next;
  } while (cursor !== undefined);
  if ('batch' in index && count === 0) throw new NotFoundError(`Batch ${index.batch} not found`);
  return { payouts: [...payouts.values()], unreadable: [...unreadable.values()] };
}

async function readPage(
  connection: LedgerConnection,
  payoutIds: readonly string[],
  unreadable: Map<string, NotVerifiedError>,
): Promise<Payout[]> {
  return readReadable(connection, payoutIds, (error, payoutId) => {
    unreadable.set(payoutId, new NotVerifiedError(toPlainText(error.message)));
  });
}
