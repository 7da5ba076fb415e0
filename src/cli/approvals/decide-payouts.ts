import type { ApprovalDecision } from '../../ledger/control-record.js';
import type { Command } from 'commander';
import { z } from 'zod';
import { isAborted } from '../../base/clock.js';
import { type ActSigner, findSigningKey } from '../../control/approvals/act-signer.js';
import {
  APPROVAL_LIFETIME_MS,
  formatApproval,
  LONGEST_APPROVAL_MS,
  makeApproval,
  signApproval,
} from '../../control/approvals/approval.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { durationField } from '../../control/policy/values.js';
import {
  ConflictError,
  InvalidInputError,
  NotFoundError,
  NotVerifiedError,
  type PayoutError,
  StoppedError,
} from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { formatCount, formatTimeUtc } from '../../base/format.js';
import { parseActor } from '../../ledger/payout.js';
import { addApproval, requireApproval } from '../../control/operator/store-approval.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import {
  type ApprovalView,
  checkApprover,
  verifyApprovals,
  verifyApprovable,
} from '../../control/approvals/approvable-payout.js';
import { toPlainText } from '../../base/plain-text.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm, requireTerminal } from '../context/confirm.js';
import { nameFlags } from '../context/flags.js';
import { addSigningOptions, openApprover, requireKeyring, type SigningFlags } from '../context/signing.js';
import { describeApprovable, type ShownPayout } from './describe-approvable.js';
import { type ChosenPayouts, readNamed, readWaiting } from './read-chosen.js';

interface PayoutDecision {
  readonly decision: ApprovalDecision;
  readonly of: readonly string[] | { readonly batch: string };
  readonly asks: boolean;
}

interface Run {
  readonly context: CliContext;
  readonly ledger: PayoutLedger;
  readonly wanted: PayoutDecision;
  readonly flags: ApprovalFlags;
  readonly approver: Approver;
  readonly view: Omit<ApprovalView, 'now'>;
  readonly lifetimeMs: number;
  readonly reason: string | undefined;
  readonly signal: AbortSignal;
}

const DONE = { approve: 'approved', reject: 'rejected' } as const;
const ASKED = { approve: 'Approve', reject: 'Reject' } as const;

/**
 * Verifies and shows payouts, asks, and signs the hash of each verified intent. One that cannot be approved does not
 * hold up the others.
 * @throws NotVerifiedError if the key is not an approver's, or a signature kept payouts back
 * @throws ConflictError if a payout's state, or this key's earlier rejection, kept it back
 */
export async function decidePayouts(context: CliContext, wanted: PayoutDecision, flags: ApprovalFlags): Promise<void> {
  const keyring = requireKeyring(context.environment);
  const [lifetimeMs, reason] = [parseLifetime(flags.expiresIn), await parseReason(flags.reason)];
  const approver = await findApprover(context, flags, keyring);
  const asks = wanted.asks && approver.signer !== undefined;
  if (asks) requireTerminal(context.terminal);
  const signal = context.stopSignal();
  await withAccount(context, async ({ ledger }) => {
    const { connection } = ledger;
    const chosen =
      'batch' in wanted.of ? await readWaiting(connection, wanted.of) : await readNamed(connection, wanted.of);
    const view = { platformId: connection.platformId, keyring };
    await decide(
      { context, ledger, wanted: { ...wanted, asks }, flags, approver, view, lifetimeMs, reason, signal },
      chosen,
    );
  });
}

async function decide(run: Run, { payouts, unreadable }: ChosenPayouts): Promise<void> {
  const { context, ledger, wanted, approver } = run;
  const tally = new ApprovalTally(payouts.length + unreadable.length, context);
  for (const error of unreadable) tally.refuse(error);
  const { shown, decidedBefore } = verifyAll(run, payouts, tally);
  if (decidedBefore > 0) {
    const said = `${DONE[wanted.decision]} by ${approver.name} before`;
    context.writeError(`${formatCount(decidedBefore, 'payout')} left as they are: ${said}\n`);
  }
  if (shown.length > 0) {
    const { currencies } = await readGatewayFacts(ledger.connection);
    context.writeError(describeApprovable(shown, currencies, context.colours, Date.now()));
    if (wanted.asks) await confirm(askAbout(run, shown.length), { terminal: context.terminal, signal: run.signal });
    await signAll(run, shown, tally);
  } else if ('batch' in wanted.of) {
    context.writeError(`Nothing to do: no payout of batch ${wanted.of.batch} waits for this approval.\n`);
  }
  tally.end();
}

/** Signs payouts named one by one again. A batch skips what this key decided before, so a second run continues. */
function verifyAll(
  { wanted, approver, view: { platformId, keyring } }: Run,
  payouts: ChosenPayouts['payouts'],
  tally: ApprovalTally,
): { readonly shown: readonly ShownPayout[]; readonly decidedBefore: number } {
  const view = { platformId, keyring, now: Date.now() };
  const shown: ShownPayout[] = [];
  let decidedBefore = 0;
  for (const payout of payouts) {
    try {
      const found = verifyApprovable(payout, view);
      checkApprover(found, approver.person, wanted.decision);
      const approvals = verifyApprovals(payout, view);
      const isDecided = approvals.some(
        ({ approval, person }) =>
          person !== undefined && approval.by === approver.name && approval.decision === wanted.decision,
      );
      if (isDecided && 'batch' in wanted.of) decidedBefore += 1;
      else shown.push({ ...found, approvals });
    } catch (error) {
      tally.refuse(error);
    }
  }
  return { shown, decidedBefore };
}

function askAbout({ wanted, approver, view: { platformId }, lifetimeMs }: Run, count: number): string {
  const hours = formatTimeUtc(new Date(Date.now() + lifetimeMs).toISOString());
  const payouts = `${formatCount(count, 'payout')} of account ${platformId}`;
  return `${ASKED[wanted.decision]} ${payouts} with key ${approver.name} (${approver.person}), until ${hours}?`;
}

/** One by one: a hardware key needs a touch each, and each signature is stored at once. */
async function signAll(run: Run, shown: readonly ShownPayout[], tally: ApprovalTally): Promise<void> {
  let done = 0;
  try {
    for (const payout of shown) {
      if (isAborted(run.signal)) throw new StoppedError('Stopped');
      try {
        await signOne(run, payout);
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

async function signOne(run: Run, shown: ShownPayout): Promise<void> {
  const { context, ledger, wanted, flags, approver, view, lifetimeMs, reason } = run;
  const { payoutId, intent } = shown.about;
  const content = { payoutId, intent, decision: wanted.decision };
  const approval = makeApproval(content, approver, Date.now(), lifetimeMs);
  if (approver.signer === undefined) {
    context.writeJson({
      ...approval,
      ...describeForOthers(run, shown),
      text: formatApproval(view.platformId, approval),
    });
    return;
  }
  const signed = await signApproval(approver.signer, view.platformId, approval);
  requireApproval(shown, signed, { ...view, now: Date.now() });
  if (flags.offline === true) {
    context.writeJson({ ...signed, ...describeForOthers(run, shown) });
    return;
  }
  await addApproval(ledger, signed, reason);
  const until = formatTimeUtc(signed.expiresAt);
  context.write(
    `Payout ${payoutId} is ${DONE[wanted.decision]} by key ${approver.name} (${approver.person}) until ${until}.\n`,
  );
}

/** For people to read. The approval's signature does not cover it. */
function describeForOthers({ reason }: Run, { payout, about }: ShownPayout): object {
  const { paymentId, amount, symbol, addressTo } = payout;
  const { signedBy, requestedBy } = about;
  return {
    ...(reason === undefined ? {} : { reason }),
    payout: { paymentId, amount, symbol, addressTo, signedBy, requestedBy },
  };
}

export interface ApprovalFlags extends SigningFlags {
  readonly reason?: string;
  readonly expiresIn?: string;
  readonly offline?: true;
}

/** Without a signer, another program signs with the named key. */
interface Approver {
  readonly name: string;
  readonly audience: string;
  readonly person: string;
  readonly signer: ActSigner | undefined;
}

export function addApprovalOptions(command: Command): Command {
  return addSigningOptions(command, 'an approver')
    .option('--expires-in <duration>', 'for how long it holds: 90m, 24h (default), at most 7d')
    .option('--offline', 'write nothing to Redis: print what is signed as JSON lines');
}

/** Returns ms. */
function parseLifetime(given: string | undefined): number {
  if (given === undefined) return APPROVAL_LIFETIME_MS;
  const lifetimeMs = parseInput(z.object({ '--expires-in': durationField }), { '--expires-in': given })['--expires-in'];
  if (lifetimeMs <= LONGEST_APPROVAL_MS) return lifetimeMs;
  throw new InvalidInputError([{ field: '--expires-in', message: `must be at most 7d (got "${given}")` }]);
}

async function parseReason(reason: string | undefined): Promise<string | undefined> {
  if (reason === undefined) return undefined;
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
  if (offline !== true) {
    throw new NotVerifiedError(
      'An approval is signed by an approver: give --key FILE (a private key) or --ssh-key FILE.pub (ssh-agent, a hardware key). Nothing was changed',
    );
  }
  if (keyName !== undefined) return keyName;
  const message = 'is missing: it says who is to sign what --offline prints, where no key is given';
  throw new InvalidInputError([{ field: '--key-name', message }]);
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
