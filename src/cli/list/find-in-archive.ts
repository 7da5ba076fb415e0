import { dayOf, type ArchiveFolder } from '../../archive/archive-files.js';
import { lineFragment, readArchive, type ArchivedPayout } from '../../archive/read-archive.js';
import { parseWallet, splitTag } from '../../gateway/wallet.js';
import { matches, type PayoutFilter } from '../../ledger/payout-queries.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAudited } from '../../ledger/reads/read-audited.js';

/**
 * Returns the newest day first; within a day, the last archived first. Skips payouts still in Redis because the worker
 * ended before it removed them.
 * @param onDamage - called for what cannot be read
 */
export async function* findInArchive(
  connection: LedgerConnection,
  folder: ArchiveFolder,
  filter: PayoutFilter,
  pageSize: number,
  onDamage: (message: string) => void,
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

/** Rejects most lines before they are parsed. */
function createLineTest({ state, batch, amount, address }: PayoutFilter): (line: string) => boolean {
  const fragments = [
    ...(state === undefined ? [] : [lineFragment('state', state)]),
    ...(batch === undefined ? [] : [lineFragment('batch', batch)]),
    ...(amount === undefined ? [] : [lineFragment('amount', amount)]),
    // Without the last quote: a destination tag may follow. An address with several spellings is compared after
    // parsing.
    ...(address === undefined || hasSpellings(address) ? [] : [lineFragment('addressTo', address).slice(0, -1)]),
  ];
  return (line) => fragments.every((fragment) => line.includes(fragment));
}

/** A tag that its network does not have does not change the wallet. */
function hasSpellings(addressTo: string): boolean {
  const [address] = splitTag(addressTo);
  const { family = /^0x/i.test(address) ? 'hex' : 'base58' } = parseWallet(address);
  return family !== 'base58';
}

/** If Redis lost a payout, or never had it, only the archive counts. */
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
