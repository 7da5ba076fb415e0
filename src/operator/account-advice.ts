import type { AccountStats } from '../ledger/reads/account-stats.js';
import { isOfBalance } from '../gateway/gateway.js';
import type { KnownJournal } from '../ledger/sender-ledger.js';
import { findKnownJournals, UNNAMED } from './adoption.js';
import { formatCommand, type AdviceOptions, type Command } from './next-steps.js';

/** A problem that stops an account until an operator ends it. */
export interface AccountAdvice {
  readonly kind: 'objection' | 'pause';
  readonly problem: string;
  readonly first: string;
  /** Ends the problem. Words in capitals are placeholders. */
  readonly command: string;
}

/**
 * Every problem that stops an account, with the command that ends it. `payouts stats`, `payouts doctor`, the dashboard
 * and the health server all use it.
 *
 * An objection comes before a pause: resuming an account whose ledger forgot sends would pay them again.
 */
export function adviseAccount(
  stats: Pick<AccountStats, 'platformId' | 'objections' | 'journals' | 'paused' | 'pausedReason' | 'pauses'>,
  options: AdviceOptions = {},
): readonly AccountAdvice[] {
  const { objections, paused, pausedReason, pauses } = stats;
  if (objections.length > 0) return [adviseObjection(stats, options)];
  if (!paused) return [];
  const [oldest, ...others] = pauses;
  const isOfSeveral = oldest !== undefined && others.length > 0;
  const problem = isOfSeveral
    ? pauses.map(({ reason, by }) => `${reason} (by ${by})`).join('; ')
    : (pausedReason ?? '');
  const resume: Command = isOfSeveral ? { name: 'resume', args: ['--of', oldest.by, ...RESUME.args] } : RESUME;
  const cause =
    oldest?.by === ADOPTION
      ? 'Look first at what came back held or queued, and cancel what must not be paid (docs/runbooks/ledger-mismatch.md).'
      : isOfBalance(pausedReason ?? '')
        ? 'Pay in first, and wait until the balance shows it (docs/runbooks/balance-low.md).'
        : 'Remove the cause first.';
  return [
    {
      kind: 'pause',
      problem: `paused: ${problem}`,
      first: isOfSeveral ? `Remove each cause first; this ends the pause of ${oldest.by}.` : cause,
      command: formatCommand(resume, stats.platformId, options),
    },
  ];
}

/** Who pauses an adopted ledger. */
const ADOPTION = 'adoption';

/** Whether the ledger was adopted, and what came back is still to be looked at. */
export function isJustAdopted({ pauses }: Pick<AccountStats, 'pauses'>): boolean {
  return pauses.some(({ by }) => by === ADOPTION);
}

const RESUME: Command = { name: 'resume', args: ['--reason', 'WHY'] };

function adviseObjection(
  { platformId, objections, journals }: Pick<AccountStats, 'platformId' | 'objections' | 'journals'>,
  options: AdviceOptions,
): AccountAdvice {
  const problem = objections
    .map(({ journalId, host, reason }) => `send journal ${journalId}${host === '' ? '' : ` on ${host}`}: ${reason}`)
    .join(' ');
  const damaged = objections.filter(({ kind }) => kind === 'journal').map(({ journalId }) => journalId);
  const known = findKnownJournals({ journals, objections });
  const isOlder = objections.some(({ kind }) => kind === 'ledger');
  // A journal that format 1 did not name may be among the readable ones.
  const lost = known.filter(
    ({ journalId, dir }) => damaged.includes(journalId) || (dir === '' && journalId !== UNNAMED),
  );
  const readable = known.filter((journal) => isOlder && journal.dir !== '' && !lost.includes(journal));
  const command = adoptCommand(
    platformId,
    foldersOf(readable),
    isOlder ? lost.map(({ journalId }) => journalId) : damaged,
    options,
  );
  const placed = known.filter(({ journalId, dir }) => damaged.includes(journalId) && dir !== '');
  const putBack = adoptCommand(platformId, foldersOf(placed), [], options);
  return {
    kind: 'objection',
    problem,
    first: isOlder
      ? 'Restore the newest copy of the Redis data, if there is one. Otherwise let the application enqueue again what Redis forgot, then run this where all these folders can be read; for a journal that is permanently lost, replace its --journal DIR with --give-up ID.'
      : `Restore the journal file as it was, if you can, and run \`${putBack}\`. Otherwise:`,
    command,
  };
}

/**
 * The folders of journals, for {@link adoptCommand}. If several hosts have the same path, or the folder was already
 * read, a copy is needed: a word in capitals is the placeholder for its place.
 * @param read - folders that were already read
 */
export function foldersOf(journals: readonly KnownJournal[], read: readonly string[] = []): string[] {
  return journals.map(({ host, dir }) => {
    const isAmbiguous = read.includes(dir) || journals.some((other) => other.dir === dir && other.host !== host);
    return isAmbiguous ? `COPY-FROM-${host}:${dir}` : dir;
  });
}

export function adoptCommand(
  platformId: number,
  dirs: readonly string[],
  giveUp: readonly string[],
  options: AdviceOptions = {},
): string {
  const args = [
    ...[...new Set(dirs)].flatMap((dir) => ['--journal', dir]),
    ...[...new Set(giveUp)].flatMap((journalId) => ['--give-up', journalId]),
    ...['--reason', 'WHY'],
  ];
  return formatCommand({ name: 'adopt-ledger', args }, platformId, options);
}
