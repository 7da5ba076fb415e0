import type { Command } from 'commander';
import { readConfig } from '../../config.js';
import { InvalidInputError } from '../../errors.js';
import { findArchived } from '../../archive/find-archived.js';
import { namingArchive, readArchiveFolder } from '../context/archive-place.js';
import { runAudit, type AuditOptions, type AuditResult } from '../audit/run-audit.js';
import type { CliContext } from '../context/cli-context.js';
import { CommandFailedError, UntrustedError } from '../context/exit-code.js';
import { readJournalFolder } from '../context/journal-place.js';
import { findKeyring } from '../context/keyring.js';
import { findPolicy } from '../context/policy.js';
import { withAccount } from '../context/with-account.js';
import { startProgress } from '../import/progress.js';
import { describeAudit, toAuditJson } from '../output/format-audit-result.js';

interface VerifyFlags {
  readonly head?: string;
  readonly journal?: readonly string[];
  readonly offline?: true;
  readonly json?: true;
}

const HELP_AFTER = `
1. Each line of the journal names the one before it by its SHA-256: a line that was changed, removed, put in or moved shows. What
   was cut off at the end shows by the head, which the worker tells every ten minutes in its log, as an event and as a metric: the
   line of the newest event has to be there, and the one that you give with --head. Lines of the formats 1 and 2 name none; of them
   only the last before the upgrade is covered.
2. With PAYOUT_KEYS_FILE: the key of each signed send was a producer's then, the signature in the journal and in the payout's record
   holds, and so does each approval that counted, of another person than the signer. Sends of which one of these is gone are counted
   apart; so are those of keys that are revoked now. Where PAYOUT_POLICY_FILE is the policy by which a send was judged, its quorums are
   there (rules without a window or hours).
3. Against Redis: each send is there, with the data and the transaction that the journal has, in a state that can follow from it, and
   each payment that Redis knows is in the journal. Of payouts that PAYOUT_RETENTION_DAYS removed, state and time are compared, or
   PAYOUT_ARCHIVE_DIR is asked. What was sent before the journal began is counted, and cannot be compared. Where an operator gave
   the transaction, it rests on his word.

Other hosts with journals of their own: copy their folders, or mount them, and name each with --journal.

Exit codes: 0 nothing is wrong. 1 Redis could not be compared, and the rest is right. 3 no journal. 5 something is wrong: each finding
says what, and what to do.

Examples:
  payouts audit verify
  payouts audit verify --json | jq .findings
  payouts audit verify --offline --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
`;

/** Defines `payouts audit verify`. */
export function defineAuditVerify(parent: Command, context: CliContext): void {
  parent
    .command('verify')
    .description('check that nothing of the journal was changed, and compare it with signatures and Redis')
    .option('--head <hash>', 'hash of a line that has to be there')
    .option('--journal <dir...>', 'folder of the journal of another host, repeatable')
    .option('--offline', 'without Redis: the journal and the keys of its sends alone')
    .option(
      '--json',
      'print {journalId, files, lines, sends, head, faults, verified, notVerifiable, ledger, findings, …} as JSON',
    )
    .addHelpText('after', HELP_AFTER)
    .action(async ({ head: given, journal = [], offline, json }: VerifyFlags) => {
      const head = parseHash(given);
      const { dir, platformId } = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const policy = findPolicy(context.environment);
      const { PAYOUT_RETENTION_DAYS: retentionDays } = readConfig(['PAYOUT_RETENTION_DAYS'], context.environment);
      const verify = async (connection: AuditOptions['connection']): Promise<AuditResult> =>
        showProgress(context, async (onProgress) =>
          runAudit({
            ...{ dirs: [dir, ...journal], platformId, keyring, policy, head },
            ...{ retentionDays, isArchived: openArchive(context), connection, onProgress },
          }),
        );
      const result = offline
        ? await verify(undefined)
        : await withAccount(context, async ({ ledger }) => verify(ledger.connection));
      if (json) context.writeJson(toAuditJson(result));
      else context.write(describeAudit(result, head, keyring !== undefined));
      requireRight(result, head, offline === true);
    });
}

/** What retention removed is in the archive, where the worker has one. */
function openArchive(context: CliContext): AuditOptions['isArchived'] {
  const folder = readArchiveFolder(context);
  const onDamage = (message: string): void => {
    context.writeError(`${message}.\n`);
  };
  return async (payoutId, state) => {
    if (folder === undefined) return false;
    const found = await namingArchive(folder, async () => findArchived(folder, { payoutId }, { onDamage }));
    return found?.state === state;
  };
}

async function showProgress<Result>(
  { terminal }: CliContext,
  work: (onProgress: (done: number) => void) => Promise<Result>,
): Promise<Result> {
  const progress = startProgress('Compared:', undefined, terminal.output);
  try {
    return await work((done) => {
      progress.update(done);
    });
  } finally {
    progress.stop();
  }
}

/** @throws CommandFailedError that gives the command its exit code */
function requireRight(
  { reports, findings, notCompared }: AuditResult,
  head: string | undefined,
  isOffline: boolean,
): void {
  const isHeadThere = head === undefined || reports[0]?.found !== undefined;
  const isWhole = reports.every(({ faults }) => faults.length === 0) && isHeadThere;
  if (!isWhole || findings.length > 0) throw new UntrustedError('Something is not as it was written');
  if (notCompared !== undefined && !isOffline) throw new CommandFailedError('Redis could not be compared');
}

function parseHash(given: string | undefined): string | undefined {
  if (given === undefined || /^[0-9a-f]{64}$/.test(given)) return given;
  throw new InvalidInputError([
    {
      field: '--head',
      message: `must be 64 hexadecimal digits, as \`payouts audit verify\` prints it (got "${given}")`,
    },
  ]);
}
