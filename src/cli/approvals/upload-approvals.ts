import type { SignedApproval } from '../../control/approval.js';
import { InvalidInputError, NotVerifiedError, StoppedError } from '../../errors.js';
import { isAborted } from '../../clock.js';
import { formatCount } from '../../format.js';
import { addApproval, parseApproval } from '../../ledger/add-approval.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { judgeApproval, verifyApprovable, type ApprovalView } from '../../operator/approvable-payout.js';
import type { CliContext } from '../context/cli-context.js';
import { requireKeyring } from '../context/keyring.js';
import { withAccount } from '../context/with-account.js';
import { openSource } from '../import/open-source.js';
import { RowMessages } from '../import/row-messages.js';
import { ApprovalTally } from './approval-tally.js';
import { parseReason } from './approval-options.js';
import { readNamed } from './read-chosen.js';

interface UploadedApproval {
  readonly approval: SignedApproval;
  readonly reason: string | undefined;
}

/**
 * Stores approvals that were signed elsewhere. Each proves itself, so nobody is asked; those that would not count are left out.
 * @param path - JSON lines, as `--offline` prints them; `-` for stdin
 * @throws InvalidInputError when a line is no signed approval: nothing is stored
 * @throws NotVerifiedError, ConflictError when some were left out; NotFoundError; InvalidConfigError; StoppedError; RedisUnavailableError
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
        await store(ledger, verifyApprovable(payout, view), one, view);
        stored += 1;
      } catch (error) {
        tally.refuse(error);
      }
    }
    context.write(`${formatCount(stored, 'approval')} of ${uploaded.length} stored.\n`);
    tally.end();
  });
}

async function store(
  ledger: PayoutLedger,
  payout: ReturnType<typeof verifyApprovable>,
  { approval, reason }: UploadedApproval,
  view: ApprovalView,
): Promise<void> {
  const { message } = judgeApproval(payout, approval, view);
  if (message !== undefined) {
    const { payoutId, by } = approval;
    throw new NotVerifiedError(`The approval of payout ${payoutId} by key ${by} does not count: ${message}`);
  }
  await addApproval(ledger, approval, reason);
}

/** @throws InvalidInputError when any line is no signed approval; all such lines were named */
async function readApprovals(context: CliContext, path: string, signal: AbortSignal): Promise<UploadedApproval[]> {
  const source = await openSource(path, signal);
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const uploaded: UploadedApproval[] = [];
  let invalid = 0;
  for await (const row of source.rows) {
    try {
      if ('problems' in row) throw new InvalidInputError(row.problems);
      uploaded.push(await parseLine(row.input));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      invalid += 1;
      for (const { field, message } of error.problems) messages.add(`line ${row.line}: ${field}: ${message}`);
    }
  }
  messages.end();
  if (invalid > 0) throw unusable(source.name, `${invalid} of its lines cannot be used; nothing was changed`);
  if (uploaded.length === 0) throw unusable(source.name, 'contains no signed approval');
  return uploaded;
}

/** What `--offline` prints for persons to read, and is not signed: what is verified here counts. */
const BESIDE_IT = ['payout', 'text', 'reason'];

async function parseLine(input: Readonly<Record<string, unknown>>): Promise<UploadedApproval> {
  const { reason } = input;
  const approval = Object.fromEntries(Object.entries(input).filter(([name]) => !BESIDE_IT.includes(name)));
  const given = reason === undefined ? undefined : await parseReason(String(reason));
  return { approval: parseApproval(approval), reason: given };
}

function unusable(field: string, message: string): InvalidInputError {
  return new InvalidInputError([{ field, message }]);
}
