import { indexPath, type ArchiveFolder } from './archive-files.js';
import { mayHave, type ArchiveKey } from './archive-index.js';
import { lineFragment, readArchive, type ArchivedPayout, type ReadOptions } from './read-archive.js';

/**
 * Finds a payout in the archive by its payoutId or its txhash; where there are several, the newest.
 * @throws Error when the folder or a file cannot be read
 */
export async function findArchived(
  folder: ArchiveFolder,
  key: ArchiveKey,
  { onDamage }: Pick<ReadOptions, 'onDamage'>,
): Promise<ArchivedPayout | undefined> {
  const [field, value] = 'payoutId' in key ? (['payoutId', key.payoutId] as const) : (['txhash', key.txhash] as const);
  const fragment = lineFragment(field, value);
  const pages = readArchive(folder, {
    wants: async (path) => mayHave(indexPath(path), key),
    mayMatch: (line) => line.includes(fragment),
    onDamage,
  });
  for await (const payouts of pages) {
    // The text may also stand in the metadata.
    const found = payouts.find((payout) => payout[field] === value);
    if (found !== undefined) return found;
  }
  return undefined;
}
