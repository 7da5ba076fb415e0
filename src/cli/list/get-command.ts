import type { Command } from 'commander';
import { folderPath } from '../../archive/archive-files.js';
import type { ArchiveKey } from '../../archive/archive-index.js';
import { findArchived } from '../../archive/find-archived.js';
import type { ArchivedPayout } from '../../archive/read-archive.js';
import { systemClock } from '../../base/clock.js';
import { NotFoundError } from '../../base/errors.js';
import { isSameGatewayId } from '../../base/fields.js';
import {
  formatDuration,
  formatExactMoney,
  formatFee,
  formatTime,
  formatTimeUtc,
  toIsoTime,
} from '../../base/format.js';
import { describeNetwork } from '../../gateway/wallet.js';
import { journalPath } from '../../journal/journal-files.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import { readItems } from '../../journal/journal-reader.js';
import type { GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { type HistoryEntry, lastedMs, type Payout, type PayoutComment, shownGatewayId } from '../../ledger/payout.js';
import { readAudited } from '../../ledger/reads/read-audited.js';
import { STATE_MEANING } from '../../ledger/states.js';
import { describeEvidence, describeLookUp } from '../../operator/describe-look-up.js';
import { describeApproval, describeUnverified } from '../approvals/describe-approvable.js';
import { describeOutcome } from '../audit/compare-send.js';
import {
  namingArchive,
  readArchiveFolder,
  readFacts,
  readJournalFolder,
  withAccount,
  withProducer,
} from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { describeReceipt, openApprovalCheck, openReceiptVerifier } from '../context/keys.js';
import { help } from '../context/flags.js';
import { colourState, type Fact, formatFacts, formatTable, formatText } from '../output/format-table.js';
import { toPayoutJson } from '../output/payout-json.js';

export function defineGetCommand(command: Command, context: CliContext): void {
  command
    .argument('[payoutId]', 'the payout')
    .option('--gateway-id <id>', 'find it by what its payment is called at the gateway (API v1: its txhash)')
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      help(
        `With PAYOUT_KEYS_FILE it says whether a worker of the keyring signed the final state, and whether each approval counts now. A payout
that PAYOUT_RETENTION_DAYS removed is found in PAYOUT_ARCHIVE_DIR, on the worker's host.`,
        'payouts get invoice-77',
        'payouts get invoice-77 --json | jq .history',
        'payouts get --gateway-id 3f1c…',
      ),
    )
    .action(async (payoutId: string | undefined, flags: { gatewayId?: string; json?: true }) => {
      const { gatewayId, json } = flags;
      if ((payoutId === undefined) === (gatewayId === undefined))
        command.error('error: give a payoutId or --gateway-id');
      const verifier = await openReceiptVerifier(context.environment);
      const key = gatewayId === undefined ? { payoutId: payoutId ?? '' } : { gatewayId };
      const present = await withProducer(context, (producer) =>
        'gatewayId' in key ? producer.getByGatewayId(key.gatewayId) : producer.get(key.payoutId),
      );
      const found = present ?? (await requireRemoved(context, key));
      const payout = verifier?.mark(found) ?? found;
      const receipt = describeReceipt(verifier?.verify(found));
      const judged = (await openApprovalCheck(context.environment))?.(found);
      if (json) context.writeJson(toPayoutJson(payout, judged));
      else {
        const approvals = judged?.map(describeApproval) ?? found.approvals?.map(describeUnverified) ?? [];
        context.write(
          formatPayout(payout, context.colours, (await readFacts(context)) ?? NO_FACTS, receipt, approvals),
        );
      }
    });
}

/** @throws NotFoundError naming where else the payout may be */
async function requireRemoved(context: CliContext, key: ArchiveKey): Promise<ArchivedPayout> {
  const folder = readArchiveFolder(context);
  const onDamage = (message: string): void => {
    context.writeError(`${message}.\n`);
  };
  const found = folder && (await namingArchive(folder, async () => findArchived(folder, key, { onDamage })));
  if (found !== undefined) return found;
  const place = folder && folderPath(folder);
  throw new NotFoundError(
    'gatewayId' in key ? await noPayment(context, key.gatewayId, place) : await noPayout(context, key.payoutId, place),
  );
}

async function noPayment(context: CliContext, gatewayId: string, place: string | undefined): Promise<string> {
  const notFound = `No payout has the payment ${gatewayId}${place === undefined ? '' : `, in Redis or in the archive ${place}`}`;
  const sends = await describeSends(context, ({ outcome }) => {
    return outcome?.kind === 'accepted' && isSameGatewayId(outcome.gatewayId, gatewayId);
  });
  return sends === '' ? notFound : `${notFound}. ${sends}\`payouts audit verify\` compares both`;
}

async function noPayout(context: CliContext, payoutId: string, place: string | undefined): Promise<string> {
  const state = await withAccount(context, async ({ ledger }) => {
    const [record] = await readAudited(ledger.connection, [payoutId]);
    return record?.kind === 'removed' ? record.state : undefined;
  });
  const sends = await describeSends(context, (send) => send.payoutId === payoutId);
  if (state === undefined) {
    const lost = `${sends}Redis has lost its record: \`payouts audit verify\` compares both`;
    return `Payout ${payoutId} not found${sends === '' ? '' : `. ${lost}`}`;
  }
  const removed = `Payout ${payoutId} was ${state}, and PAYOUT_RETENTION_DAYS removed it from Redis`;
  return place === undefined
    ? `${removed}. ${sends}If the worker had PAYOUT_ARCHIVE_DIR it is there: run the command on the worker's host with the same PAYOUT_ARCHIVE_DIR`
    : `${removed}. ${sends}It is not in the archive ${place}: each host has what its own worker removed, and nothing from before PAYOUT_ARCHIVE_DIR was set`;
}

/** Redis may be wrong. Empty if the journal is on another host, or no longer has the payout. */
async function describeSends(context: CliContext, isWanted: (send: JournalEntry) => boolean): Promise<string> {
  const { dir, platformId } = readJournalFolder(context);
  const sends: string[] = [];
  for await (const item of readItems(journalPath(dir, platformId))) {
    if (!('payoutId' in item) || !isWanted(item)) continue;
    const { paymentId, amount, addressTo } = item.request;
    const at = formatTimeUtc(toIsoTime(item.at));
    const what = `attempt ${item.attempt} of ${item.payoutId}: ${formatExactMoney(amount, paymentId, [])} to ${addressTo} at ${at}`;
    sends.push(`The send journal has ${what}, ${describeOutcome(item)}. `);
  }
  return sends.join('');
}

type Colours = CliContext['colours'];

type PayoutFacts = Pick<GatewayFacts, 'currencies' | 'lookUp' | 'lookUpAt' | 'lookUpMessage'>;
const NO_FACTS: PayoutFacts = { currencies: [] };

/** @param receipt - who signed the final state, if that was verified */
function formatPayout(
  payout: Payout & { readonly archivedIn?: string },
  colours: Colours,
  gateway: PayoutFacts,
  receipt?: string,
  approvals: readonly string[] = [],
): string {
  const { state, lookUp } = payout;
  const { currencies } = gateway;
  const facts: readonly Fact[] = [
    ['amount', formatExactMoney(payout.amount, payout.paymentId, currencies)],
    ['payment id', payout.paymentId],
    ['address', payout.addressTo],
    ['network', describeNetwork(payout, currencies)],
    ['symbol', payout.symbol],
    ['gateway id', shownGatewayId(payout)],
    ['txhash', payout.txhash],
    ['paid too late as', payout.lateGatewayId],
    ['fee', formatFee(payout, currencies)],
    ['receipt', receipt],
    ['held', payout.held && `${payout.held.kind} (${payout.held.reason}): ${payout.held.message}`],
    ...approvals.map((approval): Fact => ['approval', approval]),
    ['message', payout.message],
    ['send attempts', payout.attempt],
    ['request may arrive until', payout.inFlightUntil && formatTimeUtc(payout.inFlightUntil)],
    ['the worker', lookUp && [describeLookUp(lookUp), describeEvidence(gateway)].filter(Boolean).join('. ')],
    ['reference', payout.reference],
    ['batch', payout.batch],
    ['priority', payout.priority],
    ['not before', payout.notBefore && formatTimeUtc(payout.notBefore)],
    ['requested by', payout.requestedBy],
    ['signed by', payout.signed?.key],
    ['signed until', payout.signed && formatTimeUtc(payout.signed.expiresAt)],
    ['archived in', payout.archivedIn],
    ['metadata', payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata)],
  ];
  const history = payout.history.map((entry, index) => {
    const lasted = lastedMs(payout.history, index, systemClock.wallNow());
    return formatEntry(entry, lasted, colours);
  });
  return [
    `${formatText(`${colours.bold(payout.payoutId)}  ${colourState(state, colours)}: ${STATE_MEANING[state]}`)}\n`,
    formatFacts(colours, facts),
    `\nHistory (UTC)\n`,
    formatTable(history),
    ...formatComments(payout.comments),
  ].join('');
}

/** As activity shows an act without a key: by whom it says it is. */
function formatComments(comments: readonly PayoutComment[] = []): readonly string[] {
  if (comments.length === 0) return [];
  const rows = comments.map(({ at, by, text }) => ['', formatTime(at), `${by}: ${text}`]);
  return [`\nComments (UTC), not signed\n`, formatTable(rows)];
}

/** @param lasted - ms; undefined if it lasts for good */
function formatEntry({ at, to, by, reason }: HistoryEntry, lasted: number | undefined, colours: Colours): string[] {
  return [
    '',
    formatTime(at),
    colourState(to, colours),
    lasted === undefined ? '' : `for ${formatDuration(lasted)}`,
    [by === undefined ? '' : `by ${by}`, reason ?? ''].filter(Boolean).join(': '),
  ];
}
