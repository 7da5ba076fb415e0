import { SignedDecisions } from '../../control/operator/sign-decision.js';
import { type Actor, lastMessage, type Payout, toLine } from '../../ledger/payout.js';
import { type PayoutChanges, PAYOUTS_PER_CHANGE } from '../../ledger/payout-ledger.js';
import type { PayoutState } from '../../ledger/states.js';
import { changeManyPayouts, sweepCancelledJobs } from '../../operator/change-payouts.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { requireOperator } from '../context/confirm.js';
import { checkBatch, describeSource, refuse } from '../context/flags.js';
import { describeKept, describeUndo, KEEP_COMMAND } from '../output/kept-note.js';
import { type Decider, describeSigning, type SigningFlags } from '../context/signer.js';
import { readSelectionFile } from './read-selection-file.js';
import { type BulkSteps, runBulk } from './run-bulk.js';
import type { ChosenPayout, Selection } from './survey-payouts.js';

export interface ChangeFlags extends Actor, SigningFlags {
  readonly batch?: string;
  readonly state?: PayoutState;
  readonly message?: string;
  readonly file?: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly json?: true;
  readonly attempt?: string;
}

/** What differs between the commands that change one payout or many. */
export interface Change {
  readonly from: readonly PayoutState[];
  readonly to: 'cancelled' | 'queued' | 'held';
  readonly isSigned: (flags: ChangeFlags) => boolean;
  readonly changeOne: (
    context: CliContext,
    payoutId: string,
    actor: Actor,
    decider: Decider | undefined,
    flags: ChangeFlags,
  ) => Promise<Payout>;
  readonly done: string;
  readonly then: string;
  /** Question without its mark: `Cancel 3 payouts`. */
  readonly describe: (payouts: string, signing: string) => string;
  /** `3 payouts cancelled` */
  readonly describeDone: (payouts: string) => string;
}

/** @param payoutIds - none if the options choose */
export async function changeMany(
  context: CliContext,
  change: Change,
  payoutIds: readonly string[],
  flags: ChangeFlags,
  actor: Actor,
  decider: Decider | undefined,
): Promise<void> {
  const { batch, state, file, message, dryRun } = flags;
  checkBatch(batch);
  if (message?.trim() === '') refuse('--message', 'must not be empty');
  // Naming each payout is a decision: only a choice by options needs a question.
  const yes = payoutIds.length > 0 || flags.yes === true;
  if (!yes && !dryRun) requireOperator(context.terminal, file);
  const signal = context.stopSignal();
  const selection = await select(context, payoutIds, flags, signal);
  const text = message?.toLowerCase();
  await withAccount(context, async (account) => {
    const bulk = {
      ...toLedgerSteps(account, change.to, actor, decider, describeSource(flags)),
      from: state === undefined ? change.from : [state],
      matches: (payout: Payout) => text === undefined || lastMessage(payout)?.toLowerCase().includes(text) === true,
      describe: (payouts: string) => change.describe(payouts, describeSigning(decider)),
      describeDone: change.describeDone,
      describeKept: async () => {
        const { connection } = account.ledger;
        const kept = change.to === 'queued' ? '' : await describeKept(connection, KEEP_COMMAND, signal);
        if (change.to !== 'cancelled') return kept;
        const chosen = payoutIds.length > 0 ? payoutIds : batch === undefined ? [] : ['--batch', batch];
        const undo = payoutIds.length > 0 ? chosen : [...chosen, '--cancelled-for', toLine(actor.reason)];
        return `${kept}${describeUndo(undo, connection.platformId)}`;
      },
      finish: async () => {
        if (change.to === 'cancelled') await sweepCancelledJobs(account, new AbortController().signal);
      },
    };
    await runBulk(context, account, bulk, selection, { ...flags, yes }, signal);
  });
}

async function select(
  context: CliContext,
  payoutIds: readonly string[],
  { batch, file }: ChangeFlags,
  signal: AbortSignal,
): Promise<Selection> {
  if (payoutIds.length > 0) return { kind: 'named', payouts: payoutIds.map((payoutId) => ({ payoutId })) };
  if (batch !== undefined) return { kind: 'batch', batch };
  if (file === undefined) return { kind: 'all' };
  return { kind: 'named', payouts: await readSelectionFile(context, file, 'nothing', signal) };
}

/**
 * The scripts are short, so Redis can serve the sender between them.
 * @param decider - signs each payout that will be sent again
 * @param source - see {@link PayoutChanges}
 */
export function toLedgerSteps(
  account: LedgerAccess,
  to: PayoutState,
  actor: Actor,
  decider: Decider | undefined,
  source: string | undefined,
): BulkSteps {
  return {
    // One at a time: a failed step must not lose signatures that needed a touch.
    atOnce: decider?.signer.isInteractive === true ? 1 : PAYOUTS_PER_CHANGE,
    everyMs: 'rest',
    apply: async (payouts) => changeByState(account, payouts, { to, source }, actor, decider),
    wasChanged: (payout) => wasSentAgainBy(actor, payout),
  };
}

async function changeByState(
  account: LedgerAccess,
  payouts: readonly ChosenPayout[],
  change: Pick<PayoutChanges, 'to' | 'source'>,
  actor: Actor,
  decider: Decider | undefined,
): Promise<(Error | undefined)[]> {
  const errors: (Error | undefined)[] = [];
  const decisions = decider && new SignedDecisions(decider);
  for (const from of new Set(payouts.map(({ state }) => state))) {
    const group = payouts.filter(({ state }) => state === from);
    errors.push(...(await changeManyPayouts(account, { ...change, from, payouts: group }, actor, decisions)));
  }
  return errors;
}

function wasSentAgainBy({ by, reason }: Actor, { state, history }: Payout): boolean {
  return history.some(
    (entry) =>
      entry.to === 'queued' && entry.from === state && entry.by === toLine(by) && entry.reason === toLine(reason),
  );
}
