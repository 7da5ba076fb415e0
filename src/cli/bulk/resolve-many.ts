import { z } from 'zod';
import { readConfig } from '../../config.js';
import { parseInput, payoutIdField, txhashField } from '../../fields.js';
import { toLine, type HistoryEntry } from '../../ledger/payout.js';
import { readSelectionRows } from './read-selection-rows.js';
import { runBulk, type BulkChange } from './run-bulk.js';
import { readSelection, type SelectedPayout } from './selection.js';
import type { ChosenPayout } from './survey-payouts.js';
import type { CliContext } from '../context/cli-context.js';
import { requireTerminal, stdinIsTaken } from '../context/confirm.js';
import { openSource, STDIN } from '../import/open-source.js';
import { RowMessages } from '../import/row-messages.js';
import type { Actor } from '../../ledger/actor.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import { PayoutOperator } from '../../operator/payout-operator.js';
import type { DecidedPayout, Resolution } from '../../operator/resolve-payout.js';
import { nameFlags } from '../context/name-flags.js';
import { withAccount } from '../context/with-account.js';
import { withGateway } from '../context/with-gateway.js';

export interface ResolveManyOptions {
  readonly kind: Resolution['kind'];
  /** Take the transactions without asking the gateway. */
  readonly force: boolean;
  /** The file that names the payouts; without it all that are `unknown`. */
  readonly file: string | undefined;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

type BulkPace = Pick<BulkChange, 'atOnce' | 'everyMs'>;

const LEDGER_PACE: BulkPace = { atOnce: 50, everyMs: 0 };

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

/**
 * Carries out one decision about many payouts that are `unknown`.
 * @throws as `runBulk` and `PayoutOperator.resolve` do
 */
export async function resolveMany(context: CliContext, options: ResolveManyOptions, actor: Actor): Promise<void> {
  const { kind, force, dryRun } = options;
  requireSomebody(options, context);
  const signal = context.stopSignal();
  const selected = options.file === undefined ? 'all' : await readFile(context, options.file, kind, signal);
  const run = async (pace: BulkPace, gateway?: GatewayClient): Promise<void> =>
    withAccount(context, async (account) => {
      const operator = new PayoutOperator({ account, gateway });
      const change: BulkChange = {
        from: 'unknown',
        wasChanged: ({ history }) => kind === 'not_sent' && history.some((entry) => isDecision(entry, actor)),
        ...pace,
        ...TEXTS[kind],
        apply: async (payout) =>
          nameFlags(async () => operator.resolve(toDecided(payout), toResolution(payout, options), actor)),
      };
      await runBulk(context, account, change, { ...options, selected, signal });
    });
  if (kind !== 'sent' || force || dryRun) await run(LEDGER_PACE);
  else {
    const { STATUS_POLL_RATE: atOnce } = readConfig(['STATUS_POLL_RATE'], context.environment);
    const pace = { atOnce, everyMs: 1_000 };
    await withGateway(context, async (gateway) => run(pace, gateway));
  }
}

/** Whether a payout was queued again by this actor for this reason. */
function isDecision({ from, to, by, reason }: HistoryEntry, actor: Actor): boolean {
  return from === 'unknown' && to === 'queued' && by === toLine(actor.by) && reason === toLine(actor.reason);
}

function toDecided({ payoutId, attempt }: ChosenPayout): DecidedPayout {
  return { payoutId, attempt };
}

function toResolution({ txhash = '' }: ChosenPayout, { kind, force }: ResolveManyOptions): Resolution {
  return kind === 'sent' ? { kind, txhash, unchecked: force } : { kind };
}

/** @throws InvalidInputError when nobody can be asked */
function requireSomebody({ yes, dryRun, file }: ResolveManyOptions, { terminal }: CliContext): void {
  if (yes || dryRun) return;
  requireTerminal(terminal);
  if (file === STDIN) throw stdinIsTaken();
}

async function readFile(
  context: CliContext,
  path: string,
  kind: Resolution['kind'],
  signal: AbortSignal,
): Promise<readonly SelectedPayout[]> {
  const source = await openSource(path, signal, readSelectionRows);
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const parse = (input: unknown): SelectedPayout =>
    kind === 'sent' ? parseInput(withTxhash, input) : parseInput(withoutTxhash, input);
  try {
    return await readSelection(source, {
      parse,
      signal,
      onProblem: (line, { field, message }) => {
        messages.add(`line ${line}: ${field}: ${message}`);
      },
    });
  } finally {
    messages.end();
  }
}

const withoutTxhash = z.object({ payoutId: payoutIdField });
const withTxhash = z.object({ payoutId: payoutIdField, txhash: txhashField });
