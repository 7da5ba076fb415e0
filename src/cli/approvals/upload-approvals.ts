import { InvalidInputError, StoppedError } from '../../base/errors.js';
import { isAborted } from '../../base/clock.js';
import { formatCount } from '../../base/format.js';
import { parseUploadedApproval, storeApproval, type UploadedApproval } from '../../control/operator/store-approval.js';
import type { CliContext } from '../context/cli-context.js';
import { requireKeyring } from '../context/signing.js';
import { withAccount } from '../context/account.js';
import { openSource } from '../import/open-source.js';
import { RowMessages } from '../import/progress.js';
import { ApprovalTally } from './decide-payouts.js';
import { readNamed } from './read-chosen.js';

/**
 * Stores approvals signed elsewhere. Each proves itself, so the command does not ask. It skips those that would not
 * count.
 * @param path - JSON lines, as `--offline` prints them; `-` for stdin
 * @throws InvalidInputError if a line is no signed approval; nothing is stored
 * @throws NotVerifiedError if a signature did not count
 * @throws ConflictError if a payout's state kept an approval back
 */
export async function uploadApprovals(context: CliContext, path: string): Promise<void> {
  const keyring = requireKeyring(context.environment);
  const signal = context.stopSignal();
  const uploaded = await readApprovals(context, path, signal);
  await withAccount(context, async ({ ledger }) => {
    const view = { platformId: ledger.connection.platformId, keyring, now: Date.now() };
    const payoutIds = uploaded.map(({ approval: { payoutId } }) => payoutId);
    const { payouts, unreadable } = await readNamed(ledger.connection, payoutIds);
    const tally = new ApprovalTally(uploaded.length, context);
    for (const error of unreadable) tally.refuse(error);
    const found = new Map(payouts.map((payout) => [payout.payoutId, payout]));
    let stored = 0;
    for (const one of uploaded) {
      if (isAborted(signal)) throw new StoppedError(`Stopped after ${formatCount(stored, 'approval')}`);
      const payout = found.get(one.approval.payoutId);
      if (payout === undefined) continue;
      try {
        await storeApproval(ledger, payout, one, view);
        stored += 1;
      } catch (error) {
        tally.refuse(error);
      }
    }
    context.write(`${formatCount(stored, 'approval')} of ${uploaded.length} stored.\n`);
    tally.end();
  });
}

/** @throws InvalidInputError after reporting all bad lines */
async function readApprovals(context: CliContext, path: string, signal: AbortSignal): Promise<UploadedApproval[]> {
  const source = await openSource(path, signal);
  const messages = new RowMessages(context);
  const uploaded: UploadedApproval[] = [];
  let invalid = 0;
  for await (const row of source.rows) {
    try {
      if ('problems' in row) throw new InvalidInputError(row.problems);
      uploaded.push(parseUploadedApproval(row.input));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      invalid += 1;
      for (const problem of error.problems) messages.addProblem(row.line, problem);
    }
  }
  messages.end();
  if (invalid > 0) throw unusable(source.name, `${invalid} of its lines cannot be used; nothing was changed`);
  if (uploaded.length === 0) throw unusable(source.name, 'contains no signed approval');
  return uploaded;
}

function unusable(field: string, message: string): InvalidInputError {
  return new InvalidInputError([{ field, message }]);
}
