import { resolve } from 'node:path';
import type { KeyFinder } from '../../control/keys/keyring.js';
import { INTENT_LIFETIME_MS } from '../../control/intents/intent-signer.js';
import { formatTime } from '../../format.js';
import { journalPath } from '../../journal/journal-files.js';
import { JournalReader } from '../../journal/journal-reader.js';
import type { JournalView } from '../../journal/journal-view.js';
import { ViewedJournal } from '../../journal/viewed-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { peekSenderView } from '../../ledger/read-sender-view.js';
import { RedisSenderLedger } from '../../ledger/redis-sender-ledger.js';
import { forAccount } from '../../operator/next-steps.js';
import { cannotKnow } from '../../worker/sender/journal-audit.js';
import { SignedAuthority } from '../../control/worker/signed-authority.js';
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
  const now = clock.wallNow();
  const journal = new ReadJournal(reader.view, now);
  const authority = new SignedAuthority({ platformId, keyring, journal, clock, doubtMs: 0 });
  if (pause !== undefined) {
    const { pausedReason, resumeAct } = await peekSenderView(connection);
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
  const { bornAt, complete } = control.marksAt(now);
  if (complete !== undefined) return ok(NAME, `stated to be complete by ${complete.by} (${complete.reason})`);
  if (now - bornAt >= INTENT_LIFETIME_MS) return ok(NAME, 'begun before any payout was signed that has not expired');
  const since = bornAt === now ? "the worker's first start" : showTime(bornAt);
  const ledger = new RedisSenderLedger(connection, 'reply');
  const { journals } = await peekSenderView(connection);
  const fix = `Compare what waits with the gateway's records, then run \`payouts audit adopt-journal --account ${platformId} --reason WHY\` on this host.`;
  if (!(await cannotKnow({ ledger, journal, authority }, journals))) {
    const detail = `this host sends no payout that was signed before ${since}: the journal cannot know whether it was sent`;
    return warning(NAME, detail, fix);
  }
  return problem(NAME, `this host sends nothing: payouts wait that were signed before ${since}`, fix);
}

class ReadJournal extends ViewedJournal {
  protected readonly view: JournalView;
  readonly #now: number;

  /** @param now - wall clock, ms: a journal that is not there yet begins with the worker's start */
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
  return formatTime(new Date(time).toISOString());
}
