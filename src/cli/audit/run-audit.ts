import { RedisUnavailableError } from '../../base/errors.js';
import { formatTimeUtc } from '../../base/format.js';
import { journalPath } from '../../journal/journal-files.js';
import { readItems } from '../../journal/journal-reader.js';
import { verifyJournal, type JournalReport } from '../../control/audit/verify-journal.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { readHeads, type HeadEvent } from '../../control/audit/read-heads.js';
import { noJournal } from '../context/account.js';
import { type AuditedJournal, auditLedger, coveredFrom, type LedgerAudit } from './audit-ledger.js';
import { type AuditContext, type Finding, findingOf, identifyFinding } from './finding.js';
import { toRejectedFinding } from './verify-send.js';

export interface AuditResult {
  readonly reports: readonly JournalReport[];
  readonly audit: LedgerAudit | undefined;
  readonly notCompared: string | undefined;
  /** Journals that the ledger knows and the audit did not read. */
  readonly otherJournals: readonly string[];
  readonly findings: readonly Finding[];
}

/**
 * Verifies the journals and the signatures of their sends, then compares both with the ledger.
 * @param dirs - of the journals, this host's first
 * @param head - a line that the first journal must have
 * @throws NotFoundError if a folder has no journal
 */
export async function runAudit(
  dirs: readonly string[],
  head: string | undefined,
  context: AuditContext,
): Promise<AuditResult> {
  const seen = await whileAvailable(context.connection, readSeen);
  const heads = seen.reply?.heads ?? new Map<string, HeadEvent>();
  const journals = await openJournals(dirs, context.platformId, head, heads);
  const reports = journals.map(({ report }) => report);
  const ofJournals = [
    ...reports.slice(0, 1).flatMap((report) => findMissingHead(report, head) ?? []),
    ...journals.flatMap((journal) => findLostHead(journal, heads) ?? []),
    ...reports.flatMap(({ rejectedSends }) => rejectedSends.map(toRejectedFinding)),
  ];
  const otherJournals = (seen.reply?.journalIds ?? []).filter(
    (id) => !reports.some(({ journalId }) => journalId === id),
  );
  const read = { reports, otherJournals };
  if (reports.some(({ isReadable }) => !isReadable)) {
    return { ...read, audit: undefined, notCompared: 'a line of the journal makes no sense', findings: ofJournals };
  }
  const connection = seen.trouble === undefined ? context.connection : undefined;
  const audited = await whileAvailable(connection, async (known) =>
    auditLedger(journals, { ...context, connection: known }),
  );
  const audit = audited.reply ?? (await auditLedger(journals, { ...context, connection: undefined }));
  const notCompared = context.connection === undefined ? 'left out (--offline)' : (seen.trouble ?? audited.trouble);
  return {
    ...read,
    audit,
    notCompared,
    findings: [...new Map([...ofJournals, ...audit.findings].map((each) => [identifyFinding(each), each])).values()],
  };
}

/** Read before the journals, so that intact journals have all of it. */
interface SeenLedger {
  readonly heads: ReadonlyMap<string, HeadEvent>;
  readonly journalIds: readonly string[];
}

async function readSeen(connection: LedgerConnection): Promise<SeenLedger> {
  // Fails for a ledger of another version.
  await connection.run('find-forgotten-sends', {});
  const [heads, journalIds] = await Promise.all([
    readHeads(connection),
    ask(connection.redis.hkeys(connection.keys.journals)),
  ]);
  return { heads, journalIds };
}

/** @returns `trouble` if Redis did not respond */
async function whileAvailable<Reply>(
  connection: LedgerConnection | undefined,
  work: (connection: LedgerConnection) => Promise<Reply>,
): Promise<{ readonly reply?: Reply; readonly trouble?: string }> {
  if (connection === undefined) return {};
  try {
    return { reply: await work(connection) };
  } catch (error) {
    if (error instanceof RedisUnavailableError) return { trouble: error.message };
    throw error;
  }
}

async function openJournals(
  dirs: readonly string[],
  platformId: number,
  head: string | undefined,
  heads: ReadonlyMap<string, HeadEvent>,
): Promise<AuditedJournal[]> {
  const hashes = [...heads.values()].map(({ hash }) => hash);
  const journals: AuditedJournal[] = [];
  for (const [index, dir] of dirs.entries()) {
    const report = await verifyJournal(dir, platformId, index === 0 ? head : undefined, hashes);
    if (report === undefined) throw noJournal({ dir, platformId });
    journals.push({ report, items: () => readItems(journalPath(dir, platformId)) });
  }
  return journals;
}

/** Reports that a line is missing which the operator kept elsewhere. */
function findMissingHead({ found }: JournalReport, head: string | undefined): Finding | undefined {
  if (head === undefined || found !== undefined) return undefined;
  const message = `no line of this journal has the hash of --head, ${head}: its end was cut off, or the head is that of another journal`;
  const action =
    "Put the files back, from the disk's backup. If the head was published for another journal, verify that one.";
  return findingOf({ payoutId: '' }, 'head', message, action);
}

/** Reports a published head missing from a journal that covers its time. */
function findLostHead(journal: AuditedJournal, heads: ReadonlyMap<string, HeadEvent>): Finding | undefined {
  const { report } = journal;
  const head = heads.get(report.journalId);
  if (head === undefined || report.foundHeads.includes(head.hash) || head.at < coveredFrom([journal])) return undefined;
  const at = formatTimeUtc(new Date(head.at).toISOString());
  const message = `a worker published at ${at} that the journal ends with ${head.hash}, and that line is not there: its end was cut off`;
  const action =
    'Put the files back, from the disk\'s backup. If the worker\'s log names another head at that time ("head of the send journal"), someone has written the event into Redis.';
  return findingOf({ payoutId: '' }, 'head', message, action);
}
