import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { formatCount } from '../../format.js';
import { describeLostJournal, findMismatch, findOwnJournals } from '../../journal/find-mismatch.js';
import { readJournal } from '../../journal/read-journal.js';
import type { ReadableJournal } from '../../journal/send-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { peekSenderView } from '../../ledger/read-sender-view.js';
import { RedisSenderLedger } from '../../ledger/redis-sender-ledger.js';
import type { KnownJournal, SenderView } from '../../ledger/sender-ledger.js';
import { adoptCommand } from '../../operator/account-advice.js';
import type { AdviceOptions } from '../../operator/signed-command.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const NAME = 'journal and ledger';
const WITHOUT_SENDS = 'A worker on this host would start a journal without the earlier sends.';

/** Whether the journal of this host and the ledger agree on the sends. Both are only read. */
export async function checkJournalAgreement(
  journalDir: string,
  connection: LedgerConnection,
  options: AdviceOptions,
): Promise<CheckResult> {
  const dir = resolve(journalDir);
  let journal: ReadableJournal | undefined;
  try {
    journal = await readJournal(dir, connection.platformId);
  } catch (error) {
    return problem(NAME, (error as Error).message, 'See docs/operations.md; do not delete the journal.');
  }
  const view = await peekSenderView(connection);
  if (journal?.ledger === undefined) return judgeMissing(connection.platformId, dir, view);
  const mismatch = await findMismatch(journal, view, new RedisSenderLedger(connection, 'reply'));
  if (mismatch !== undefined) {
    return problem(NAME, mismatch.reason, 'See docs/operations.md, "An objection stops the account".');
  }
  const { journalId } = journal;
  const replaced = findOwnJournals(view, hostname()).find(
    (known) => known.dir === dir && known.journalId !== journalId,
  );
  if (replaced === undefined) return ok(NAME, `they agree on ${journal.ledger.sends} sends`);
  return warning(
    NAME,
    `they agree, but the journal of this host began later: the one before it (${replaced.journalId}) is gone`,
    `Without it a Redis that comes back older may forget sends unnoticed. Restore it to a folder of its own for \`payouts adopt-ledger --account ${connection.platformId}\`, or ${giveUp(connection.platformId, [replaced], options)}.`,
  );
}

/** No journal, or one without a send. Only what the ledger knows tells whether there should be one. */
function judgeMissing(platformId: number, dir: string, view: SenderView): CheckResult {
  const own = findOwnJournals(view, hostname());
  if (own.length > 0) {
    const elsewhere = own.filter((known) => known.dir !== '' && known.dir !== dir);
    const where = elsewhere.map(
      (known) =>
        ` If it is where the ledger last saw it, set SEND_JOURNAL_DIR=${known.dir}, or stop the worker and copy the file from there.`,
    );
    return problem(
      NAME,
      describeLostJournal(own, dir),
      `A worker on this host waits.${where.join('')} Restore the file. If it is permanently lost, compare what waits with the gateway's records and run \`payouts audit adopt-journal --account ${platformId} --reason WHY\`.`,
    );
  }
  const sends = Math.max(view.sendCount, ...view.journals.map((known) => known.sends));
  if (sends === 0) return ok(NAME, 'the journal of this host is empty, the ledger has no sends');
  return warning(
    NAME,
    `the journal of this host is empty, the ledger has ${formatCount(sends, 'send')}`,
    `Check SEND_JOURNAL_DIR. ${WITHOUT_SENDS}`,
  );
}

function giveUp(platformId: number, journals: readonly KnownJournal[], options: AdviceOptions): string {
  const ids = journals.map(({ journalId }) => journalId);
  return `run \`${adoptCommand(platformId, [], ids, options)}\``;
}
