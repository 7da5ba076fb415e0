import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { GUARD_MS } from '../../base/settings.js';
import { folderPath, type ArchiveFolder } from '../../archive/archive-files.js';
import { within, type Clock } from '../../base/clock.js';
import { INTENT_LIFETIME_MS } from '../../control/intents/intent-signer.js';
import type { KeyFinder } from '../../control/keys/keyring.js';
import { formatCount, formatTimeUtc, toIsoTime } from '../../base/format.js';
import { describeLostJournal, findMismatch, findOwnJournals } from '../../journal/find-mismatch.js';
import { findExisting, folderAdvice, journalPath } from '../../journal/journal-files.js';
import { JournalReader, readJournal } from '../../journal/journal-reader.js';
import { type JournalView, ViewedJournal } from '../../journal/journal-view.js';
import type { ReadableJournal } from '../../journal/send-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { peekSenderView } from '../../ledger/sender-view.js';
import { RedisSenderLedger } from '../../ledger/redis-sender-ledger.js';
import type { SenderView } from '../../ledger/sender-ledger.js';
import { adoptCommand } from '../../operator/account-advice.js';
import { formatCommand } from '../../operator/next-steps.js';
import { cannotKnow } from '../../worker/sender/journal-audit.js';
import { SignedAuthority } from '../../control/worker/signed-authority.js';
import { ok, problem, warning, type Check, type Finding } from './check-result.js';

/** An empty folder has no memory of earlier sends. */
const TO_MOVE = 'To move the journal: stop the worker, copy the whole folder, then set SEND_JOURNAL_DIR to the copy.';

const FOLDER_WRITES = 5;
const SLOW_MS = 50;
const ANSWERS_WITHIN_MS = 10_000;

/** Uses a temporary file: the journal belongs to the running worker. */
export async function checkJournalFolder(journalDir: string, clock: Clock): Promise<Finding> {
  const wanted = resolve(journalDir);
  try {
    const timed = await within(ANSWERS_WITHIN_MS, timeFolder(wanted, clock), clock);
    if (timed === undefined) {
      const detail = `${wanted} has not answered for ${ANSWERS_WITHIN_MS / 1_000} s: its disk hangs`;
      return problem(detail, 'Check the disk or its mount: nothing is sent until it answers.');
    }
    const { dir, syncMs } = timed;
    const place = dir === wanted ? wanted : `${wanted} (created by the worker)`;
    const detail = `${place} is writable, synced to disk in ${syncMs.toFixed(1)} ms`;
    if (syncMs > GUARD_MS / 2) {
      return problem(detail, `A send must begin within ${GUARD_MS} ms: take load off this disk. ${TO_MOVE}`);
    }
    return syncMs > SLOW_MS
      ? warning(detail, `Every send waits that long: take load off this disk. ${TO_MOVE}`)
      : ok(detail);
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    return problem(`${wanted} cannot be written: ${cause.message}`, `${folderAdvice(cause)} ${TO_MOVE}`);
  }
}

async function timeFolder(wanted: string, clock: Clock): Promise<{ dir: string; syncMs: number }> {
  // Creating it would give it the wrong owner.
  const dir = await findExisting(wanted);
  return { dir, syncMs: await timeSync(dir, clock) };
}

/** Time until a write is on disk, ms. @throws Error if the folder cannot be written */
async function timeSync(dir: string, clock: Clock): Promise<number> {
  const path = join(dir, `.payouts-doctor-${randomUUID()}`);
  const file = await open(path, 'wx');
  try {
    const times: number[] = [];
    for (let write = 0; write < FOLDER_WRITES; write += 1) {
      const startedAt = clock.now();
      await file.write('payouts doctor\n');
      await file.datasync();
      times.push(clock.now() - startedAt);
    }
    return times.sort((one, other) => one - other)[Math.floor(FOLDER_WRITES / 2)] ?? 0;
  } finally {
    await file.close();
    await rm(path);
  }
}

/** Without the archive payouts are still sent, but Redis grows. */
export async function checkArchiveFolder(
  folder: ArchiveFolder,
  retentionDays: number | undefined,
  clock: Clock,
): Promise<Finding> {
  const path = folderPath(folder);
  if (retentionDays === undefined) {
    return warning(
      `nothing is archived in ${path}: every payout stays in Redis`,
      'Set PAYOUT_RETENTION_DAYS, or leave PAYOUT_ARCHIVE_DIR out.',
    );
  }
  try {
    const existing = await findExisting(path);
    await timeSync(existing, clock);
    return ok(`${path} is writable${existing === path ? '' : ' (created by the worker)'}`);
  } catch (error) {
    return warning(
      `${path} cannot be written: ${(error as Error).message}`,
      'Set PAYOUT_ARCHIVE_DIR to a folder that the worker can write, on a persistent disk with free space; until then no payout is removed from Redis.',
    );
  }
}

const WITHOUT_SENDS = 'A worker on this host would start a journal without the earlier sends.';

async function checkJournalAgreement(
  journalDir: string,
  connection: LedgerConnection,
  isSigned: boolean,
): Promise<Finding> {
  const dir = resolve(journalDir);
  let journal: ReadableJournal | undefined;
  try {
    journal = await readJournal(dir, connection.platformId);
  } catch (error) {
    return problem((error as Error).message, 'See docs/runbooks/journal.md; do not delete the journal.');
  }
  const view = await peekSenderView(connection);
  if (journal?.ledger === undefined) return checkMissing(connection.platformId, dir, view);
  const mismatch = await findMismatch(journal, view, new RedisSenderLedger(connection, 'reply'));
  if (mismatch !== undefined) {
    return problem(mismatch.reason, 'See docs/runbooks/ledger-mismatch.md.');
  }
  const { journalId } = journal;
  const replaced = findOwnJournals(view, hostname()).find(
    (known) => known.dir === dir && known.journalId !== journalId,
  );
  if (replaced === undefined) return ok(`they agree on ${journal.ledger.sends} sends`);
  return warning(
    `they agree, but the journal of this host began later: the one before it (${replaced.journalId}) is gone`,
    `Without it a Redis that comes back older may forget sends unnoticed. Restore it to a folder of its own for \`payouts adopt-ledger --account ${connection.platformId}\`, or run \`${adoptCommand(connection.platformId, [], [replaced.journalId], { isSigned })}\`.`,
  );
}

/** Only the ledger shows whether there should be sends. */
function checkMissing(platformId: number, dir: string, view: SenderView): Finding {
  const own = findOwnJournals(view, hostname());
  if (own.length > 0) {
    const elsewhere = own.filter((known) => known.dir !== '' && known.dir !== dir);
    const where = elsewhere.map(
      (known) =>
        ` If it is where the ledger last saw it, set SEND_JOURNAL_DIR=${known.dir}, or stop the worker and copy the file from there.`,
    );
    return problem(
      describeLostJournal(own, dir),
      `A worker on this host waits.${where.join('')} Restore the file. If it is permanently lost, compare what waits with the gateway's records and run \`payouts audit adopt-journal --account ${platformId} --reason WHY\`.`,
    );
  }
  const sends = Math.max(view.sendCount, ...view.journals.map((known) => known.sends));
  if (sends === 0) return ok('the journal of this host is empty, the ledger has no sends');
  return warning(
    `the journal of this host is empty, the ledger has ${formatCount(sends, 'send')}`,
    `Check SEND_JOURNAL_DIR. ${WITHOUT_SENDS}`,
  );
}

/**
 * Whether this host's journal lets signed payouts be sent. Reads only. `checkJournalAgreement` reports an unreadable
 * journal.
 */
async function checkSignedJournal(
  journalDir: string,
  connection: LedgerConnection,
  keyring: KeyFinder,
): Promise<Finding> {
  const { platformId, clock } = connection;
  const reader = new JournalReader(journalPath(resolve(journalDir), platformId));
  await reader.catchUp();
  const { control } = reader.view;
  const { pause } = control;
  const now = clock.wallNow();
  const journal = new ReadJournal(reader.view, now);
  const authority = new SignedAuthority({ platformId, keyring, journal, clock });
  if (pause !== undefined) {
    const { pausedReason, resumeAct } = await peekSenderView(connection);
    const verdict = authority.judgeResume(resumeAct, pause.at);
    // If Redis shows the pause too, the check of the pause reports it.
    if (pausedReason === undefined && verdict.kind === 'refused') {
      return problem(
        `nothing is sent: paused since ${showTime(pause.at)} (${pause.reason}), although Redis shows no pause: ${verdict.message}`,
        `Find out who ended it. An operator ends it with \`${formatCommand({ name: 'resume', args: ['--reason', 'WHY'] }, platformId, { isSigned: true })}\`.`,
      );
    }
  }
  const { bornAt, complete } = control.marksAt(now);
  if (complete !== undefined) return ok(`stated to be complete by ${complete.by} (${complete.reason})`);
  if (now - bornAt >= INTENT_LIFETIME_MS) return ok('begun before any payout was signed that has not expired');
  const since = bornAt === now ? "the worker's first start" : showTime(bornAt);
  const senderLedger = new RedisSenderLedger(connection, 'reply');
  const { journals } = await peekSenderView(connection);
  const fix = `Compare what waits with the gateway's records, then run \`payouts audit adopt-journal --account ${platformId} --reason WHY\` on this host.`;
  if (!(await cannotKnow({ senderLedger, journal, authority }, journals))) {
    const detail = `this host sends no payout that was signed before ${since}: the journal cannot know whether it was sent`;
    return warning(detail, fix);
  }
  return problem(`this host sends nothing: payouts wait that were signed before ${since}`, fix);
}

class ReadJournal extends ViewedJournal {
  protected readonly view: JournalView;
  readonly #now: number;

  /** @param now - wall clock, ms: a missing journal begins with the worker's start */
  constructor(view: JournalView, now: number) {
    super();
    this.view = view;
    this.#now = now;
  }

  get journalId(): string {
    return this.view.journalId ?? '';
  }

  override get bornAt(): number {
    const { bornAt, complete } = this.view.control.marksAt(this.#now);
    return complete === undefined ? bornAt : 0;
  }
}

function showTime(time: number): string {
  return formatTimeUtc(toIsoTime(time));
}

export function journalChecks(
  journalDir: string,
  connection: LedgerConnection,
  isSigned: boolean,
  keyring: KeyFinder | undefined,
): readonly Check[] {
  const checks: Check[] = [['journal and ledger', async () => checkJournalAgreement(journalDir, connection, isSigned)]];
  if (keyring !== undefined)
    checks.push(['signed journal', async () => checkSignedJournal(journalDir, connection, keyring)]);
  return checks;
}
