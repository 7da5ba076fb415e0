import { isSameGatewayId, gatewayIdKey } from '../base/fields.js';
import { indexPath, type ArchiveFolder } from './archive-files.js';
import { mayHave, type ArchiveKey } from './archive-index.js';
import { lineFragment, readArchive, type ArchivedPayout, type ReadOptions } from './read-archive.js';

/**
 * Finds the newest payout with this payoutId or gatewayId.
 * @throws Error if the folder or a file cannot be read
 */
export async function findArchived(
  folder: ArchiveFolder,
  key: ArchiveKey,
  { onDamage }: Pick<ReadOptions, 'onDamage'>,
): Promise<ArchivedPayout | undefined> {
  // The record may spell the gatewayId differently.
  const fragment =
    'payoutId' in key
      ? lineFragment('payoutId', key.payoutId)
      : JSON.stringify(gatewayIdKey(key.gatewayId)).slice(1, -1).toLowerCase();
  const pages = readArchive(folder, {
    wants: async (path) => mayHave(indexPath(path), key),
    mayMatch: (line) => ('payoutId' in key ? line : line.toLowerCase()).includes(fragment),
    onDamage,
  });
  for await (const payouts of pages) {
    // The text may also be in the metadata.
    const found = payouts.find((payout) =>
      'payoutId' in key ? payout.payoutId === key.payoutId : isSameGatewayId(payout.gatewayId, key.gatewayId),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}
