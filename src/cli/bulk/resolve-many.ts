import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import { PayoutOperator } from '../../control/payout-operator.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { Actor, Payout } from '../../ledger/payout.js';
import type { Resolution } from '../../operator/resolve-payout.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { withAccount, withGateway } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { requireOperator } from '../context/confirm.js';
import { describeSource, nameFlags, readVariable } from '../context/flags.js';
import { describeSigning, type SigningFlags, type Decider } from '../context/signer.js';
import { describeKept, KEEP_COMMAND } from '../output/kept-note.js';
import { toLedgerSteps } from './change-many.js';
import { readSelectionFile, type SelectedPayout } from './read-selection-file.js';
import { type BulkSteps, runBulk } from './run-bulk.js';
import type { ChosenPayout, Selection } from './survey-payouts.js';

export interface ResolveFlags extends Actor, SigningFlags {
  readonly sent?: true;
  readonly notSent?: true;
  readonly writeOff?: true;
  readonly gatewayId?: string;
  readonly attempt?: string;
  readonly force?: true;
  readonly file?: string;
  readonly fromGateway?: string;
  readonly map?: string;
  readonly apply?: true;
  readonly state?: 'unknown';
  readonly dryRun?: true;
  readonly yes?: true;
  readonly expectCount?: number;
  readonly json?: true;
}

const KINDS = {
  sent: {
    needs: 'gatewayId',
    describe: (payouts: string) => `Follow the payments of ${payouts}`,
    describeDone: (payouts: string) => `${payouts} in progress: their payments are followed`,
  },
  not_sent: {
    needs: 'attempt',
    describe: (payouts: string) => `Send ${payouts} again (what was paid is paid twice)`,
    describeDone: (payouts: string) => `${payouts} queued again`,
  },
  write_off: {
    needs: 'nothing',
    describe: (payouts: string) => `Write off ${payouts}, never to be sent again`,
    describeDone: (payouts: string) => `${payouts} written off`,
  },
} as const;

/** Unchecked payments need no gateway request. */
const UNCHECKED_AT_ONCE = 50;

/**
 * Resolves the payouts of a file, or all that are `unknown`.
 * @param decider - signs each payout that was not sent
 */
export async function resolveMany(
  context: CliContext,
  kind: Resolution['kind'],
  flags: ResolveFlags,
  actor: Actor,
  decider: Decider | undefined,
): Promise<void> {
  const { force, file, dryRun, expectCount, yes } = flags;
  const asksForCount = kind === 'not_sent';
  const isAnswered = asksForCount ? expectCount !== undefined : yes;
  if (!isAnswered && !dryRun) requireOperator(context.terminal, file, asksForCount ? '--expect-count' : '--yes');
  const signal = context.stopSignal();
  const { needs, describe, describeDone } = KINDS[kind];
  const selection: Selection =
    file === undefined
      ? { kind: 'all' }
      : { kind: 'named', payouts: await readSelectionFile(context, file, needs, signal) };
  const run = async (toSteps: (account: LedgerAccess) => BulkSteps): Promise<void> =>
    withAccount(context, async (account) => {
      const change = {
        ...{ ...toSteps(account), from: ['unknown'] as const, asksForCount, describeDone },
        describe: (payouts: string) => `${describe(payouts)}${describeSigning(decider)}`,
        describeKept: async () =>
          kind === 'write_off' ? describeKept(account.ledger.connection, KEEP_COMMAND, signal) : '',
      };
      await runBulk(context, account, change, selection, flags, signal);
    });
  const follow =
    (operator: PayoutOperator, unchecked: boolean) =>
    async ({ payoutId, attempt, gatewayId = '' }: ChosenPayout) =>
      nameFlags(async () => operator.resolve({ payoutId, attempt }, { kind: 'sent', gatewayId, unchecked }, actor));
  if (kind !== 'sent') {
    await run((account) => ({
      ...toLedgerSteps(
        account,
        kind === 'not_sent' ? 'queued' : 'written_off',
        actor,
        decider,
        describeSource(file === undefined ? {} : { file }),
      ),
      // The row names its attempt, so a repeated command is told by that.
      ...(kind === 'not_sent' && { wasChanged: () => false, findStale }),
    }));
  } else if (force || dryRun) {
    await run((account) => toSentSteps(follow(new PayoutOperator({ account }), true), UNCHECKED_AT_ONCE, 0));
  } else {
    const atOnce = readVariable('STATUS_POLL_RATE', context.environment);
    await withGateway(context, async (gateway: Gateway) =>
      run((account) => toSentSteps(follow(new PayoutOperator({ account, gateway }), false), atOnce, 1_000)),
    );
  }
}

/** A row of an earlier attempt, or from before the payout became `unknown` again, says nothing about the last send. */
export function findStale({ line = 0, attempt = -1, since }: SelectedPayout, payout: Payout): string | undefined {
  const { payoutId, updatedAt } = payout;
  const about = `line ${line}: payout ${payoutId}`;
  if (attempt !== payout.attempt) {
    return `${about}: the file is about attempt ${attempt}, the payout is at attempt ${payout.attempt}: look that one up, then state it in a new file`;
  }
  if (since === undefined || since >= Date.parse(updatedAt)) return undefined;
  return `${about}: the file is of ${formatTimeUtc(toIsoTime(since))}, the payout became unknown at ${formatTimeUtc(updatedAt)}: look it up again, then state it in a new file`;
}

/** @param everyMs - from one step of `atOnce` payouts to the next */
export function toSentSteps(
  resolve: (payout: ChosenPayout) => Promise<unknown>,
  atOnce: number,
  everyMs: number,
): BulkSteps {
  return {
    ...{ atOnce, everyMs },
    wasChanged: () => false,
    apply: async (payouts) =>
      (await Promise.allSettled(payouts.map(resolve))).map((settled) =>
        settled.status === 'fulfilled' ? undefined : (settled.reason as Error),
      ),
  };
}
