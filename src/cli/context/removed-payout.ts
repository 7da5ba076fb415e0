import { folderPath } from '../../archive/archive-files.js';
import type { ArchiveKey } from '../../archive/archive-index.js';
import { findArchived } from '../../archive/find-archived.js';
import type { ArchivedPayout } from '../../archive/read-archive.js';
import { NotFoundError } from '../../errors.js';
import { formatTimeUtc } from '../../format.js';
import { isSameTxhash } from '../../fields.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import { journalPath } from '../../journal/journal-files.js';
import { readItems } from '../../journal/read-journal.js';
import { readAudited } from '../../ledger/read-audited.js';
import { describeOutcome } from '../audit/compare-send.js';
import { namingArchive, readArchiveFolder } from './archive-place.js';
import type { CliContext } from './cli-context.js';
import { readJournalFolder } from './journal-place.js';
import { withAccount } from './with-account.js';

/**
 * A payout that is not in Redis (any more), from the archive.
 * @throws NotFoundError saying where it may be; InvalidConfigError when the environment is not usable
 */
export async function requireRemoved(context: CliContext, key: ArchiveKey): Promise<ArchivedPayout> {
  const folder = readArchiveFolder(context);
  const onDamage = (message: string): void => {
    context.writeError(`${message}.\n`);
  };
  const found = folder && (await namingArchive(folder, async () => findArchived(folder, key, { onDamage })));
  if (found !== undefined) return found;
  const place = folder && folderPath(folder);
  throw new NotFoundError(
    'txhash' in key ? await noTxhash(context, key.txhash, place) : await noPayout(context, key.payoutId, place),
  );
}

async function noTxhash(context: CliContext, txhash: string, place: string | undefined): Promise<string> {
  const notFound = `No payout has txhash ${txhash}${place === undefined ? '' : `, in Redis or in the archive ${place}`}`;
  const sends = await describeSends(context, ({ outcome }) => {
    return outcome?.kind === 'accepted' && isSameTxhash(outcome.txhash, txhash);
  });
  return sends === '' ? notFound : `${notFound}. ${sends}\`payouts audit verify\` compares both`;
}

async function noPayout(context: CliContext, payoutId: string, place: string | undefined): Promise<string> {
  const state = await withAccount(context, async ({ ledger }) => {
    const [record] = await readAudited(ledger.connection, [payoutId]);
    return record?.kind === 'removed' ? record.state : undefined;
  });
  const sends = await describeSends(context, (send) => send.payoutId === payoutId);
  if (state === undefined) {
    const lost = `${sends}Redis has lost its record: \`payouts audit verify\` compares both`;
    return `Payout ${payoutId} not found${sends === '' ? '' : `. ${lost}`}`;
  }
  const removed = `Payout ${payoutId} was ${state}, and PAYOUT_RETENTION_DAYS removed it from Redis`;
  return place === undefined
    ? `${removed}. ${sends}If the worker had PAYOUT_ARCHIVE_DIR it is there: run the command on the worker's host with the same PAYOUT_ARCHIVE_DIR`
    : `${removed}. ${sends}It is not in the archive ${place}: each host has what its own worker removed, and nothing from before PAYOUT_ARCHIVE_DIR was set`;
}

/** Redis may say what is not so. Empty where the journal is on another host, or has forgotten the payout. */
async function describeSends(context: CliContext, isWanted: (send: JournalEntry) => boolean): Promise<string> {
  const { dir, platformId } = readJournalFolder(context);
  const sends: string[] = [];
  for await (const item of readItems(journalPath(dir, platformId))) {
    if (!('payoutId' in item) || !isWanted(item)) continue;
    const { paymentId, amount, addressTo } = item.request;
    const at = formatTimeUtc(new Date(item.at).toISOString());
    const what = `attempt ${item.attempt} of ${item.payoutId}: ${amount} of payment_id ${paymentId} to ${addressTo} at ${at}`;
    sends.push(`The send journal has ${what}, ${describeOutcome(item)}. `);
  }
  return sends.join('');
}
