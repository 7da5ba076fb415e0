import { resolve } from 'node:path';
import type { KeyFinder } from '../../control/keyring.js';
import { INTENT_LIFETIME_MS } from '../../control/intent-signer.js';
import { formatCount, formatTime } from '../../format.js';
import { journalPath } from '../../journal/journal-files.js';
import { JournalReader } from '../../journal/journal-reader.js';
import type { JournalView } from '../../journal/journal-view.js';
import { ViewedJournal } from '../../journal/viewed-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { peekSenderView } from '../../ledger/read-sender-view.js';
import { RedisSenderLedger } from '../../ledger/redis-sender-ledger.js';
import { forAccount } from '../../operator/next-steps.js';
import { SignedAuthority } from '../../worker/signed-authority.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const NAME = 'signed journal';

/**
 * Where payouts have to be signed: whether the journal of this host lets them be sent. It is only read. One that cannot be
 * read is told by the check of journal and ledger.
 */
export async function checkSignedJournal(
  journalDir: string,
  connection: LedgerConnection,
  keyring: KeyFinder,
): Promise<CheckResult> {
  const { platformId, clock } = connection;
  const reader = new JournalReader(journalPath(resolve(journalDir), platformId));
  await reader.catchUp();
  const { control } = reader.view;
  const { pause } = control;
  if (pause !== undefined) {
    const { pausedReason, resumeAct } = await peekSenderView(connection);
    const journal = new ReadJournal(reader.view);
    const authority = new SignedAuthority({ platformId, keyring, journal, clock, doubtMs: 0 });
    const verdict = authority.judgeResume(resumeAct, pause.at);
    // While it is paused in Redis too, the check of the pause says so.
    if (pausedReason === undefined && verdict.kind === 'refused') {
      return problem(
        NAME,
        `nothing is sent: paused since ${showTime(pause.at)} (${pause.reason}), although Redis shows no pause: ${verdict.message}`,
        `Find out who ended it. An operator ends it with \`${forAccount('payouts resume --key FILE --reason WHY', platformId)}\`.`,
      );
    }
  }
  const now = clock.wallNow();
  // Without a journal, one that begins with the worker's start.
  const { bornAt, complete } = control.marksAt(now);
  if (complete !== undefined) return ok(NAME, `stated to be complete by ${complete.by} (${complete.reason})`);
  if (now - bornAt >= INTENT_LIFETIME_MS) return ok(NAME, 'begun before any payout was signed that has not expired');
  const since = bornAt === now ? "the worker's first start" : showTime(bornAt);
  const waiting = await new RedisSenderLedger(connection, 'reply').findSignedBefore(bornAt);
  const fix = `Compare what waits with the gateway's records, then run \`payouts journal adopt --account ${platformId} --reason WHY\` on this host.`;
  if (waiting.length === 0) {
    const detail = `this host sends no payout that was signed before ${since}: the journal cannot know whether it was sent`;
    return warning(NAME, detail, fix);
  }
  const detail = `this host sends nothing: ${formatCount(waiting.length, 'payout')} waiting that the journal cannot know, signed before ${since}`;
  return problem(NAME, detail, fix);
}

class ReadJournal extends ViewedJournal {
  protected readonly view: JournalView;

  constructor(view: JournalView) {
    super();
    this.view = view;
  }
}

function showTime(time: number): string {
  return formatTime(new Date(time).toISOString());
}
