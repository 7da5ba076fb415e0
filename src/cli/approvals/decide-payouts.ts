import type { Approval, ApprovalDecision, SignedApproval } from '../../ledger/control-record.js';
import type { Command } from 'commander';
import { z } from 'zod';
import { isAborted } from '../../base/clock.js';
import { findSigningKey } from '../../control/keys/find-signing-key.js';
import type { Signer } from '../../control/keys/signer.js';
import {
  APPROVAL_LIFETIME_MS,
  formatApproval,
  hashApproval,
  LONGEST_APPROVAL_MS,
  makeApproval,
  signApproval,
} from '../../control/approvals/approval.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { durationField } from '../../control/policy/values.js';
import { ConflictError, NotFoundError, NotVerifiedError, type PayoutError, StoppedError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { formatCount, formatTimeUtc } from '../../base/format.js';
import { parseActor, type Payout } from '../../ledger/payout.js';
import { addApproval, requireApproval } from '../../control/operator/store-approval.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import {
  type ApprovalCheck,
  type ApprovalView,
  checkApprover,
  requireDecidable,
  verifyApprovals,
} from '../../control/approvals/approvable-payout.js';
import { toPlainText } from '../../base/plain-text.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm, requireOperator } from '../context/confirm.js';
import { describeSource, nameFlags, refuse } from '../context/flags.js';
import { requireKeyring } from '../context/keys.js';
import { addSigningOptions, needsApprover, openApprover, type SigningFlags } from '../context/signer.js';
import { describeKept } from '../output/kept-note.js';
import { describeApprovable, type ShownPayout } from './describe-approvable.js';
import { type ChosenPayouts, isRejected, mayBeSent, readNamed, readWaiting, waitsForApproval } from './read-chosen.js';

export interface ApprovalFlags extends SigningFlags {
  readonly batch?: string;
  readonly reason?: string;
  readonly expiresIn?: string;
  readonly offline?: true;
}

interface Run {
  readonly context: CliContext;
  readonly ledger: PayoutLedger;
  readonly decision: ApprovalDecision;
  readonly flags: ApprovalFlags;
  readonly approver: Approver;
  readonly keyring: BoundKeyring;
  readonly lifetimeMs: number;
  readonly reason: string;
  readonly signal: AbortSignal;
}

/** Without a signer, another program signs with the named key. */
interface Approver {
  readonly name: string;
  readonly audience: string;
  readonly person: string;
  readonly signer: Signer | undefined;
}

const WORDS = {
  approve: { done: 'approved', asked: 'Approve' },
  reject: { done: 'rejected', asked: 'Reject' },
  unreject: { done: 'freed from the rejection', asked: 'Take back the rejection of' },
} as const;

/** Which payouts of a batch a decision is about. */
const WAITING = { approve: waitsForApproval, reject: mayBeSent, unreject: isRejected } as const;

/**
 * Verifies and shows payouts, asks, and signs a decision about each. One that cannot be decided about does not hold up
 * the others.
 * @param payoutIds - none for those of `--batch`
 * @param asks - only before a key signs
 * @throws NotVerifiedError if the key is not an approver's, or a signature kept payouts back
 * @throws ConflictError if a payout's state or its rejections kept it back
 */
export async function decidePayouts(
  context: CliContext,
  decision: ApprovalDecision,
  payoutIds: readonly string[],
  flags: ApprovalFlags,
  asks: boolean,
): Promise<void> {
  const { batch } = flags;
  const keyring = requireKeyring(context.environment);
  const [lifetimeMs, reason] = [parseLifetime(flags.expiresIn), await parseReason(flags.reason)];
  const approver = await findApprover(context, flags, keyring);
  const mustAsk = asks && approver.signer !== undefined;
  if (mustAsk) requireOperator(context.terminal);
  const signal = context.stopSignal();
  await withAccount(context, async ({ ledger }) => {
    const { connection } = ledger;
    const chosen =
      batch === undefined
        ? await readNamed(connection, payoutIds)
        : await readWaiting(connection, { batch }, WAITING[decision]);
    const run: Run = { context, ledger, decision, flags, approver, keyring, lifetimeMs, reason, signal };
    const tally = new ApprovalTally(chosen.payouts.length + chosen.unreadable.length, context);
    for (const error of chosen.unreadable) tally.refuse(error);
    const shown = verifyAll(run, chosen.payouts, tally);
    if (shown.length > 0) {
      const { currencies } = await readGatewayFacts(connection);
      context.writeError(describeApprovable(shown, currencies, context.colours, Date.now()));
      if (mustAsk) await confirm(askAbout(run, shown.length), context.terminal, signal);
      const stored: SignedApproval[] = [];
      await signAll(run, shown, tally, stored).finally(async () => sayKept(context, connection, stored, signal));
    } else if (batch !== undefined) {
      context.writeError(`Nothing to do: no payout of batch ${batch} waits for this decision.\n`);
    }
    tally.end();
  });
}

/** Signs payouts named one by one again. A batch skips what this key decided before, so a second run continues. */
function verifyAll(run: Run, payouts: ChosenPayouts['payouts'], tally: ApprovalTally): readonly ShownPayout[] {
  const { context, decision, flags, approver } = run;
  const view = viewNow(run);
  const shown: ShownPayout[] = [];
  let decidedBefore = 0;
  for (const payout of payouts) {
    try {
      const found = requireDecidable(payout, decision, view);
      checkApprover(found, approver.person, decision);
      const approvals = verifyApprovals(payout, view);
      if (decision === 'unreject') rejectionsOf(approvals, approver, view.platformId, payout);
      const isDecided =
        decision !== 'unreject' &&
        approvals.some(
          ({ approval, person }) =>
            person !== undefined && approval.by === approver.name && approval.decision === decision,
        );
      if (isDecided && flags.batch !== undefined) decidedBefore += 1;
      else shown.push({ ...found, approvals });
    } catch (error) {
      tally.refuse(error);
    }
  }
  if (decidedBefore > 0) {
    const said = `${WORDS[decision].done} by ${approver.name} before`;
    context.writeError(`${formatCount(decidedBefore, 'payout')} left as they are: ${said}\n`);
  }
  return shown;
}

/** @throws ConflictError if no rejection by the person stands */
function rejectionsOf(
  approvals: readonly ApprovalCheck[],
  { person: own }: Approver,
  platformId: number,
  { payoutId }: Payout,
): string[] {
  const rejections = approvals.filter(({ approval, person }) => approval.decision === 'reject' && person === own);
  if (rejections.length > 0) return rejections.map(({ approval }) => hashApproval(platformId, approval));
  throw new ConflictError(`Payout ${payoutId} has no rejection by ${own}, who alone takes one back`, ['approvals']);
}

function viewNow({ ledger, keyring }: Run): ApprovalView {
  return { platformId: ledger.connection.platformId, keyring, now: Date.now() };
}

function askAbout({ decision, approver, ledger, lifetimeMs }: Run, count: number): string {
  const until =
    decision === 'approve' ? `, until ${formatTimeUtc(new Date(Date.now() + lifetimeMs).toISOString())}` : '';
  const payouts = `${formatCount(count, 'payout')} of account ${ledger.connection.platformId}`;
  return `${WORDS[decision].asked} ${payouts} with key ${approver.name} (${approver.person})${until}?`;
}

/** One by one: a hardware key needs a touch each, and each signature is stored at once. */
async function signAll(
  run: Run,
  shown: readonly ShownPayout[],
  tally: ApprovalTally,
  stored: SignedApproval[],
): Promise<void> {
  let done = 0;
  try {
    for (const payout of shown) {
      if (isAborted(run.signal)) throw new StoppedError('Stopped');
      try {
        await signOne(run, payout, stored);
      } catch (error) {
        tally.refuse(error);
      }
      done += 1;
    }
  } finally {
    if (done < shown.length) {
      run.context.writeError(`${done} of ${formatCount(shown.length, 'payout')} done; run the same command again.\n`);
    }
  }
}

/** @param stored - gets what was stored */
async function signOne(run: Run, shown: ShownPayout, stored: SignedApproval[]): Promise<void> {
  const { ledger, decision, approver } = run;
  const { platformId } = ledger.connection;
  if (decision !== 'unreject') {
    await signText(run, shown, shown.about.intent, stored);
    return;
  }
  for (const hash of rejectionsOf(shown.approvals, approver, platformId, shown.payout))
    await signText(run, shown, hash, stored);
}

async function signText(run: Run, shown: ShownPayout, intent: string, stored: SignedApproval[]): Promise<void> {
  const { context, ledger, decision, flags, approver, lifetimeMs, reason } = run;
  const { platformId } = ledger.connection;
  const { payoutId } = shown.about;
  const { payment } = shown.about;
  const approval = makeApproval({ payoutId, intent, decision, reason, payment }, approver, Date.now(), lifetimeMs);
  if (approver.signer === undefined) {
    const text = formatApproval(platformId, approval);
    context.writeJson({ ...approval, text });
    return;
  }
  const signed = await signApproval(approver.signer, platformId, approval);
  requireApproval(shown.payout, signed, viewNow(run));
  if (flags.offline === true) {
    context.writeJson(signed);
    return;
  }
  await addApproval(ledger, signed, { person: approver.person, source: describeSource({ batch: flags.batch }) });
  stored.push(signed);
  context.write(
    `Payout ${payoutId} is ${WORDS[decision].done} by key ${approver.name} (${approver.person})${endOf(signed)}.\n`,
  );
}

const KEEP_LINES =
  'Keep these lines: if Redis comes back from an older copy before a worker has run, `payouts reject --file FILE` stores them again.';

/** Says what keeps rejections: the loss of any other decision keeps a payout from being sent. */
export async function sayKept(
  context: CliContext,
  connection: LedgerConnection,
  stored: readonly SignedApproval[],
  signal: AbortSignal,
): Promise<void> {
  const rejections = stored.filter(({ decision }) => decision === 'reject');
  if (rejections.length === 0) return;
  const lines = rejections.map((rejection) => JSON.stringify(rejection)).join('\n');
  context.write(await describeKept(connection, `${KEEP_LINES}\n${lines}`, signal));
}

function endOf({ decision, payoutId, expiresAt }: Approval): string {
  if (expiresAt !== undefined) return ` until ${formatTimeUtc(expiresAt)}`;
  return decision === 'reject' ? `, until this person takes it back: \`payouts unreject ${payoutId}\`` : '';
}

/** A script may use the commands alike. */
export function addDecisionOptions(command: Command): Command {
  return addSigningOptions(command.argument('[payoutIds...]', 'the payouts, queued or held'), 'an approver')
    .option('--offline', 'write nothing to Redis: print what is signed as JSON lines')
    .option('--file <file>', 'store decisions that were signed elsewhere, - for stdin');
}

function parseLifetime(given: string | undefined): number {
  if (given === undefined) return APPROVAL_LIFETIME_MS;
  const lifetimeMs = parseInput(z.object({ '--expires-in': durationField }), { '--expires-in': given })['--expires-in'];
  if (lifetimeMs <= LONGEST_APPROVAL_MS) return lifetimeMs;
  refuse('--expires-in', `must be at most 7d (got "${given}")`);
}

async function parseReason(reason: string | undefined): Promise<string> {
  if (reason === undefined) return '';
  return (await nameFlags(() => parseActor({ by: 'approver', reason }))).reason;
}

/** @throws NotVerifiedError if no key is given, or the keyring does not have it as an approver's */
async function findApprover(context: CliContext, flags: ApprovalFlags, keyring: BoundKeyring): Promise<Approver> {
  const signer = await openApprover(context, flags, keyring);
  const name = signer?.name ?? requireKeyName(flags);
  const key = keyring.find(name);
  if (key === undefined) throw new NotVerifiedError(`The keyring has no key "${name}"`);
  if (signer === undefined) findSigningKey(keyring, key.public, { role: 'approver', now: Date.now() });
  return { name, audience: keyring.audience, person: key.person, signer };
}

function requireKeyName({ keyName, offline }: ApprovalFlags): string {
  if (offline !== true) throw needsApprover();
  if (keyName !== undefined) return keyName;
  const message = 'is missing: without a key, it names who will sign what --offline prints';
  refuse('--key-name', message);
}

export class ApprovalTally {
  readonly #isAlone: boolean;
  readonly #writeError: CliContext['writeError'];
  readonly #errors: PayoutError[] = [];

  /** @param total - payouts of the command; the error of a single one ends the command */
  constructor(total: number, { writeError }: CliContext) {
    this.#isAlone = total === 1;
    this.#writeError = writeError;
  }

  /** @throws every error that is not about a single payout */
  refuse(error: unknown): void {
    const isOfOne = [ConflictError, NotFoundError, NotVerifiedError].some((kind) => error instanceof kind);
    if (!isOfOne) throw error;
    this.#errors.push(error as PayoutError);
    if (!this.#isAlone) this.#writeError(`${toPlainText((error as PayoutError).message)}\n`);
  }

  /** @throws the error that sets the exit code: a signature error before a state error */
  end(): void {
    const [first] = this.#errors;
    if (first === undefined) return;
    if (this.#isAlone) throw first;
    const message = `${formatCount(this.#errors.length, 'payout')} left as they are, for the reasons above`;
    throw this.#errors.some((error) => error instanceof NotVerifiedError)
      ? new NotVerifiedError(message)
      : new ConflictError(message);
  }
}
