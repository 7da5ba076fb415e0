import type { Command } from 'commander';
import { readConfig } from '../../base/config.js';
import { ConflictError } from '../../base/errors.js';
import { bindingOf } from '../../base/audience.js';
import type { PayoutState } from '../../ledger/states.js';
import { adoptCommand, foldersOf } from '../../operator/account-advice.js';
import { describeMissing, readJournals } from '../../operator/adopt-ledger.js';
import { isComplete, UNWITNESSED, type Adoption, type AdoptionPlan } from '../../operator/adoption.js';
import type { CameBack, CameBackList } from '../../operator/came-back.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { hasKeyring, readAudience } from '../context/keys.js';
import {
  addSigningOptions,
  describeSigning,
  openDecider,
  SIGNING_HELP,
  type SigningFlags,
  type Decider,
} from '../context/signer.js';
import { formatTable } from '../output/format-table.js';
import { formatExact, formatTime, formatTimeUtc, shorten } from '../../base/format.js';
import type { Actor } from '../../ledger/payout.js';
import { addActorOptions, readActor, readVariable, help } from '../context/flags.js';
import { readJournalFolder, withAccount, withOperator } from '../context/account.js';

interface Flags extends Actor, SigningFlags {
  readonly journal?: readonly string[];
  readonly giveUp?: readonly string[];
  readonly gateway?: true;
  readonly yes?: true;
  readonly json?: true;
}

export function defineAdoptLedgerCommand(command: Command, context: CliContext): void {
  addActorOptions(addSigningOptions(command), 'the ledger came back without the newest sends')
    .option('--journal <dir...>', 'folder of a send journal, repeatable (default: SEND_JOURNAL_DIR)')
    .option('--give-up <id...>', `id of a journal that is lost for good, or ${UNWITNESSED}`)
    .option('--gateway', 'bind the ledger to the gateway and API of this environment')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {mismatch, unknown, adopted, held, cameBack, …} as JSON')
    .addHelpText(
      'after',
      help(
        `For a Redis that was flushed, exchanged, or put back to an older copy. Every send that a journal has and the ledger does not know
is taken over. Name the folder of every journal of the account, those of other hosts too; \`payouts stats\` prints the whole command.
If a journal is lost for good, --give-up its id: every payout that is queued, held or rejected then becomes unknown. Let the
application enqueue again what it misses before that. docs/runbooks/ledger-mismatch.md has the procedure.
--gateway adopts nothing: the gateway and API (GATEWAY_API) of this environment pay what waits from now on. ${SIGNING_HELP}`,
        'payouts adopt-ledger --yes --reason "disk failure, backup of 03:00 restored"',
        'payouts adopt-ledger --journal /mnt/host-a/journal --journal /mnt/host-b/journal --reason "ticket 812"',
        'payouts adopt-ledger --journal /mnt/host-a/journal --give-up 5f3a1c9be207 --reason "host B burnt down"',
        'payouts adopt-ledger --gateway --reason "the gateway has another host name"',
      ),
    )
    .action(async (flags: Flags) => {
      const actor = await readActor(flags);
      const decider = await openDecider(context, flags);
      const { giveUp = [], json, yes } = flags;
      if (flags.gateway) {
        await adoptGateway(context, actor, decider, flags);
        return;
      }
      const journalDirs = flags.journal ?? (await defaultDirs(context, giveUp));
      const review = async (plan: AdoptionPlan): Promise<void> => {
        context.writeError(describePlan(plan));
        if (!isComplete(plan)) throw incomplete(context, journalDirs, plan);
        if (!yes) await confirm(`Adopt this ledger${describeSigning(decider)}?`, context.terminal);
      };
      const { plan, adoption, cameBack } = await withOperator(
        context,
        async (operator) => operator.adoptLedger({ journalDirs, giveUp, review }, actor),
        decider,
      );
      if (json)
        context.writeJson(adoption === undefined ? { mismatch: null, unknown: [] } : toJson(plan, adoption, cameBack));
      else if (adoption === undefined) context.write('The send journals and the ledger agree: nothing to adopt.\n');
      else context.write(describeAdoption(adoption, cameBack, giveUp.length > 0));
    });
}

async function adoptGateway(
  context: CliContext,
  actor: Actor,
  decider: Decider | undefined,
  { yes, json }: Flags,
): Promise<void> {
  const audience = readAudience(context.environment);
  const { GATEWAY_PLATFORM_ID: platformId, GATEWAY_API: api } = readConfig(
    ['GATEWAY_PLATFORM_ID', 'GATEWAY_API'],
    context.environment,
  );
  const named = bindingOf({ platformId, audience, api });
  const before = await withAccount(context, async ({ ledger }) => ledger.readAudience());
  if (before !== named && !yes) {
    const former = before === undefined ? 'no gateway yet' : `"${before}"`;
    const question = `The ledger is bound to ${former}. Bind it to "${named}"${describeSigning(decider)}?`;
    await confirm(question, context.terminal);
  }
  const changed = await withOperator(context, async (operator) => operator.adoptGateway(audience, actor, api), decider);
  if (json) context.writeJson({ audience: named, before: before ?? null, changed });
  else if (changed)
    context.write(`The ledger is bound to "${named}": workers of this gateway send, all others refuse.\n`);
  else context.write(`The ledger is bound to "${named}" already.\n`);
}

async function defaultDirs(context: CliContext, giveUp: readonly string[]): Promise<string[]> {
  const { dir, platformId } = readJournalFolder(context);
  if (giveUp.length === 0) return [dir];
  const there = await readJournals([dir], platformId).catch(() => []);
  return there.some(({ journalId }) => !giveUp.includes(journalId)) ? [dir] : [];
}

function incomplete({ environment }: CliContext, dirs: readonly string[], plan: AdoptionPlan): ConflictError {
  const platformId = readVariable('GATEWAY_PLATFORM_ID', environment);
  const { unread, unwitnessed, giveUp } = plan;
  const readable = unread.filter(({ dir, readTo }) => dir !== '' && readTo === undefined);
  const command = adoptCommand(platformId, [...dirs, ...foldersOf(readable, dirs)], giveUp, {
    isSigned: hasKeyring(environment),
  });
  const lost = [...unread.map(({ journalId }) => journalId), ...(unwitnessed.length > 0 ? [UNWITNESSED] : [])];
  const way =
    readable.length > 0
      ? `Run it where all the folders can be read: \`${command}\`. Where a journal is lost for good, --give-up its id instead`
      : `Name the journals that have them with --journal; where there is none any more, --give-up ${lost.join(' ')}`;
  return new ConflictError(
    `Nothing was adopted, and the account stays stopped: ${describeMissing(plan).join('; ')}. ${way}: every payout that is queued, held or rejected then becomes unknown`,
    ['journals'],
  );
}

function describePlan({ reasons, forgotten, firstForgotten, holdsSendable, sendable }: AdoptionPlan): string {
  const rows = firstForgotten.map(({ send: { payoutId, attempt, at, request, outcome }, state }) => [
    '',
    payoutId,
    state ?? 'not there',
    formatTime(new Date(at).toISOString()),
    String(attempt),
    outcome?.kind ?? 'not known',
    formatExact(request.amount),
    String(request.paymentId),
    shorten(request.addressTo),
  ]);
  const head = ['', 'PAYOUT', 'IN THE LEDGER', 'SENT (UTC)', 'ATTEMPT', 'OUTCOME', 'AMOUNT', 'PAYMENT ID', 'ADDRESS'];
  const more = forgotten - rows.length;
  return [
    ...reasons.map((reason) => `${reason}\n`),
    `\nIn the journals, but unknown to the ledger: ${forgotten} sends.\n`,
    rows.length === 0 ? '' : formatTable([head, ...rows], [4, 6, 7], [1, 6]),
    more === 0 ? '' : `  … and ${more} more\n`,
    holdsSendable
      ? `\nSends are given up that no journal has: all ${sendable} queued, held or rejected payouts will become unknown.\n`
      : '',
    '\n',
  ].join('');
}

function toJson(
  { reasons }: AdoptionPlan,
  { adopted, putBack, held, epoch, sendCount, objections }: Adoption,
  cameBack: CameBack | undefined,
): object {
  return {
    mismatch: reasons[0],
    unknown: idsIn(adopted, 'unknown'),
    adopted,
    putBack,
    held,
    epoch,
    sends: sendCount,
    objections,
    cameBack: cameBack ?? null,
  };
}

function idsIn(adopted: Adoption['adopted'], state: PayoutState): string[] {
  return adopted.flatMap((payout) => (payout.state === state ? [payout.payoutId] : []));
}

function describeAdoption(
  { adopted, putBack, held, epoch, objections }: Adoption,
  cameBack: CameBack | undefined,
  gaveUp: boolean,
): string {
  const unknown = idsIn(adopted, 'unknown');
  const parts = [
    objections === 0
      ? `The ledger is adopted (epoch ${epoch}). The account is paused: look at what came back, then run \`payouts resume --of adoption --reason WHY\`.\n`
      : `The ledger is adopted (epoch ${epoch}), but ${objections} other journals object to it: see \`payouts stats\`.\n`,
    gaveUp ? 'Restart a worker whose journal was given up: it continues with a new one, or with what is left.\n' : '',
    describeIds('in progress, with the payment of the journal', idsIn(adopted, 'in_progress')),
    describeIds('rejected, as the journal says', idsIn(adopted, 'rejected')),
    describeIds('unknown, `payouts resolve` decides about each', unknown),
    describeIds(
      'cancelled or written off again, as a journal has it',
      putBack.map(({ payoutId }) => payoutId),
    ),
    LOST_OTHERWISE,
    describeCameBack(cameBack),
    held === 0
      ? ''
      : `${held} queued, held or rejected payouts became unknown: any of them may have been sent, \`payouts resolve\` decides.\n`,
  ];
  return `${parts.join('')}${unknown.length === 0 && held === 0 ? 'No payout became unknown.\n' : ''}`;
}

const LOST_OTHERWISE = `Payouts that came back queued, held or rejected are as they were when this copy was made. What was decided about them since is lost,
unless it is named above: holds, releases, retries, approvals, cancellations while no worker ran, also of payouts that wait for
their notBefore. Look through \`payouts list --state queued\`, held and rejected, and cancel what must not be paid.
`;

/** One by one, with what Redis says of each: nobody else knows whether that still is so. */
function describeCameBack(cameBack: CameBack | undefined): string {
  if (cameBack === undefined) return 'Redis became unavailable: which are held or scheduled could not be listed.\n';
  const { held, notBefore } = cameBack;
  const now = new Date().toISOString();
  return [
    describeEach(
      'held again, for the reason of that copy',
      'held',
      held,
      ({ payoutId, updatedAt, held: { message } }) => [payoutId, `since ${formatTimeUtc(updatedAt)}`, message],
    ),
    describeEach('queued for the date of that copy', 'queued', notBefore, ({ payoutId, notBefore: date }) => [
      payoutId,
      `not before ${formatTimeUtc(date)}`,
      date <= now ? 'its date has passed: it is sent once the account is resumed' : '',
    ]),
  ].join('');
}

function describeEach<Item>(
  what: string,
  state: PayoutState,
  { payouts, more }: CameBackList<Item>,
  toRow: (payout: Item) => readonly string[],
): string {
  if (payouts.length === 0) return '';
  const rest = more === 0 ? '' : `  … and ${more} more: \`payouts list --state ${state}\` has all\n`;
  return `These are ${what}:\n${formatTable(payouts.map((payout) => ['', ...toRow(payout)]))}${rest}`;
}

function describeIds(what: string, payoutIds: readonly string[]): string {
  if (payoutIds.length === 0) return '';
  return `These are ${what}:\n${payoutIds.map((payoutId) => `  ${payoutId}\n`).join('')}`;
}
