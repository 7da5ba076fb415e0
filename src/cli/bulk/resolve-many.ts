import { readConfig } from '../../base/config.js';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import type { Actor } from '../../ledger/payout.js';
import { PayoutOperator } from '../../control/payout-operator.js';
import type { Resolution } from '../../operator/resolve-payout.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import type { CliContext } from '../context/cli-context.js';
import { nameFlags } from '../context/flags.js';
import { describeSigning } from '../context/signing.js';
import { withAccount, withGateway } from '../context/account.js';
import { toLedgerChange } from './ledger-change.js';
import { readSelectionFile } from './read-selection-file.js';
import { requireSomebody, runBulk, type BulkChange } from './run-bulk.js';
import type { ChosenPayout, Selection } from './survey-payouts.js';

interface ResolveManyOptions {
  readonly kind: Resolution['kind'];
  /** Accept the transactions without asking the gateway. */
  readonly force: boolean;
  /** Undefined for all that are `unknown`. */
  readonly file: string | undefined;
  readonly dryRun: boolean;
  readonly yes: boolean;
  /** Unsent payouts, as the operator counted them. */
  readonly expectCount: number | undefined;
  readonly json: boolean;
}

type Steps = Pick<BulkChange, 'atOnce' | 'everyMs' | 'apply' | 'wasChanged'>;

const TEXTS: Readonly<Record<Resolution['kind'], Pick<BulkChange, 'describe' | 'describeDone'>>> = {
  sent: {
    describe: (payouts) => `Follow the transactions of ${payouts}`,
    describeDone: (payouts) => `${payouts} in progress: their transactions are followed`,
  },
  not_sent: {
    describe: (payouts) => `Send ${payouts} again (what was paid is paid twice)`,
    describeDone: (payouts) => `${payouts} queued again`,
  },
  write_off: {
    describe: (payouts) => `Cancel ${payouts}, never to be sent again`,
    describeDone: (payouts) => `${payouts} cancelled`,
  },
};

/** Unchecked transactions need no gateway request. */
const UNCHECKED_AT_ONCE = 50;

/** @param signer - signs each payout that was not sent */
export async function resolveMany(
  context: CliContext,
  options: ResolveManyOptions,
  actor: Actor,
  signer?: ActSigner,
): Promise<void> {
  const { kind, force, file, dryRun, expectCount } = options;
  const asksForCount = kind === 'not_sent';
  if (asksForCount) requireSomebody({ ...options, yes: expectCount !== undefined }, context, '--expect-count');
  else requireSomebody(options, context);
  const signal = context.stopSignal();
  const needs = ({ sent: 'txhash', not_sent: 'no txhash', write_off: 'nothing' } as const)[kind];
  const selection: Selection =
    file === undefined
      ? { kind: 'all' }
      : { kind: 'named', payouts: await readSelectionFile(context, file, needs, signal) };
  const run = async (toSteps: (account: LedgerAccess) => Steps): Promise<void> =>
    withAccount(context, async (account) => {
      const { describe, describeDone } = TEXTS[kind];
      const change: BulkChange = {
        ...{ from: ['unknown'], asksForCount, describeDone, ...toSteps(account) },
        describe: (payouts) => `${describe(payouts)}${describeSigning(signer)}`,
      };
      await runBulk(context, account, change, { ...options, selection, signal });
    });
  if (kind !== 'sent') {
    await run((account) => toLedgerChange(account, kind === 'not_sent' ? 'queued' : 'cancelled', actor, signer));
  } else if (force || dryRun) {
    await run((account) =>
      toSentSteps(new PayoutOperator({ account }), { atOnce: UNCHECKED_AT_ONCE, everyMs: 0 }, true, actor),
    );
  } else {
    const { STATUS_POLL_RATE: atOnce } = readConfig(['STATUS_POLL_RATE'], context.environment);
    const pace = { atOnce, everyMs: 1_000 };
    await withGateway(context, async (gateway: GatewayClient) =>
      run((account) => toSentSteps(new PayoutOperator({ account, gateway }), pace, false, actor)),
    );
  }
}

function toSentSteps(
  operator: PayoutOperator,
  pace: Pick<BulkChange, 'atOnce' | 'everyMs'>,
  unchecked: boolean,
  actor: Actor,
): Steps {
  const resolve = async ({ payoutId, attempt, txhash = '' }: ChosenPayout): Promise<unknown> =>
    nameFlags(async () => operator.resolve({ payoutId, attempt }, { kind: 'sent', txhash, unchecked }, actor));
  return {
    ...pace,
    wasChanged: () => false,
    apply: async (payouts) =>
      (await Promise.allSettled(payouts.map(resolve))).map((settled) =>
        settled.status === 'fulfilled' ? undefined : (settled.reason as Error),
      ),
  };
}
