import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { gatewayIdKey } from '../base/fields.js';
import { isMissing } from '../journal/journal-files.js';
import type { Payout } from '../ledger/payout.js';

/**
 * The index of an archive file: an eight-byte hash for each payoutId and gatewayId, unordered. It excludes days without a
 * payout, so a year is searched in under a second. A file without an index is searched itself.
 */

export type ArchiveKey = { readonly payoutId: string } | { readonly gatewayId: string };

const HASH_BYTES = 8;

function hashOf(key: ArchiveKey): Buffer {
  const text = 'payoutId' in key ? `payoutId ${key.payoutId}` : `gatewayId ${gatewayIdKey(key.gatewayId)}`;
  return createHash('sha256').update(text).digest().subarray(0, HASH_BYTES);
}

export function toIndexEntries(payouts: readonly Payout[]): Buffer {
  const keys = payouts.flatMap(({ payoutId, gatewayId }): ArchiveKey[] =>
    gatewayId === undefined ? [{ payoutId }] : [{ payoutId }, { gatewayId }],
  );
  return Buffer.concat(keys.map(hashOf));
}

/**
 * Whether the file may have the payout; true without an index. Entries may start at any byte, so a torn one spoils no
 * later one.
 */
export async function mayHave(index: string, key: ArchiveKey): Promise<boolean> {
  try {
    const entries = await readFile(index);
    return entries.includes(hashOf(key));
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}
