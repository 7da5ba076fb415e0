import { dayOf, type ArchiveFolder } from '../../archive/archive-files.js';
import { lineFragment, readArchive, type ArchivedPayout } from '../../archive/read-archive.js';
import { parseWallet, splitTag } from '../../gateway/wallet.js';
import { matches, type PayoutFilter } from '../../ledger/payout-queries.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAudited } from '../../ledger/read-audited.js';

interface FindInArchiveOptions {
  /** Payouts that are checked, and handed on, together. */
  readonly pageSize: number;
  /** Told of each thing that could not be read. */
  readonly onDamage: (message: string) => void;
}

/**
 * Finds payouts in the archive: the newest day first, in a day those first that were archived last. Days outside of `since` and
 * `until` are not opened. A payout that is still in Redis, because the worker ended before it removed it, is left out.
 * @returns the payouts, a page at a time
 * @throws RedisUnavailableError; Error when a file cannot be read
 */
export async function* findInArchive(
  connection: LedgerConnection,
  folder: ArchiveFolder,
  filter: PayoutFilter,
  { pageSize, onDamage }: FindInArchiveOptions,
): AsyncGenerator<readonly ArchivedPayout[]> {
  const { since, until } = filter;
  const pages = readArchive(folder, {
    from: since === undefined ? undefined : toDay(since),
    // `until` itself is outside.
    to: until === undefined ? undefined : toDay(until - 1),
    mayMatch: createLineTest(filter),
    onDamage,
  });
  const found: ArchivedPayout[] = [];
  for await (const payouts of pages) {
    found.push(...payouts.filter((payout) => matches(payout, filter)));
    while (found.length >= pageSize) yield await withoutPresent(connection, found.splice(0, pageSize));
  }
  yield await withoutPresent(connection, found);
}

function toDay(time: number): string {
  return dayOf(new Date(time).toISOString());
}

/** Most lines are told apart by their text, before they are parsed. */
function createLineTest({ state, batch, amount, address }: PayoutFilter): (line: string) => boolean {
  const fragments = [
    ...(state === undefined ? [] : [lineFragment('state', state)]),
    ...(batch === undefined ? [] : [lineFragment('batch', batch)]),
    ...(amount === undefined ? [] : [lineFragment('amount', amount)]),
    // Without the last quote: a destination tag may follow. What has several spellings is told apart once it is parsed.
    ...(address === undefined || hasSpellings(address) ? [] : [lineFragment('addressTo', address).slice(0, -1)]),
  ];
  return (line) => fragments.every((fragment) => line.includes(fragment));
}

/** A tag that its network does not have changes nothing of the wallet in front of it. */
function hasSpellings(addressTo: string): boolean {
  const [address] = splitTag(addressTo);
  const { family = /^0x/i.test(address) ? 'hex' : 'base58' } = parseWallet(address);
  return family !== 'base58';
}

/** Where Redis lost a payout, or never had it, the archive alone counts. */
async function withoutPresent(
  connection: LedgerConnection,
  payouts: readonly ArchivedPayout[],
): Promise<ArchivedPayout[]> {
  if (payouts.length === 0) return [];
  const records = await readAudited(
    connection,
    payouts.map(({ payoutId }) => payoutId),
  );
  return payouts.filter(({ state }, index) => {
    const record = records[index];
    return record?.kind === 'missing' || (record?.kind === 'removed' && record.state === state);
  });
}
