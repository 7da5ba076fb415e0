import type { PayoutOperator } from '../../control/payout-operator.js';
import type { Command } from 'commander';
import { InvalidInputError } from '../../base/errors.js';
import type { Actor, Payout } from '../../ledger/payout.js';
import { addChoiceOptions, requireIdsOrMany, requireOneOrMany, type ChoiceFlags } from '../bulk/choice-options.js';
import { withOperator } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { addActorOptions, readActor } from '../context/flags.js';
import { addSigningOptions, describeSigning, openSigner, SIGNING_HELP, type SigningFlags } from '../context/signing.js';
import { changeMany } from './change-many.js';

type Flags = Actor & ChoiceFlags & SigningFlags & { readonly json?: true };
type ReleaseFlags = Flags & { readonly attempt?: string };

const RETRY_HELP_AFTER = `
Only a payout that the gateway rejected can be retried. One that is unknown may have been paid: see \`payouts resolve\`.
One that is held waits for a check: see \`payouts release\`.

Many at once: --batch, --state, --message and --file (CSV with a column payout_id, as \`payouts list --csv\` writes it, or JSON
lines with payoutId) choose them; of several, a payout must meet all. They are counted and added up before anything is
changed. One that was retried for the same reason before, and rejected again, is left: give another reason to retry it.

Rejections in a row pause the account. Its payouts wait until \`payouts resume\`.
${SIGNING_HELP}
Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout or batch not
found. 4 refused; of many, all others were queued again. 5 a key is needed.

Examples:
  payouts retry invoice-77 --reason "balance topped up"
  payouts retry --message "insufficient balance" --reason "balance topped up"
  payouts retry --batch 2030-01-salaries --yes --reason "balance topped up"
  payouts retry invoice-77 --key /etc/payouts/ann.pem --reason "balance topped up"
`;

const REJECTED = ['rejected'] as const;

export function defineRetryCommand(command: Command, context: CliContext): void {
  addChoiceOptions(command.argument('[payoutId]', 'the payout; without it those that the options choose'), REJECTED);
  addActorOptions(addSigningOptions(command))
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText('after', RETRY_HELP_AFTER)
    .action(async (given: string | undefined, flags: Flags) => {
      const payoutId = requireOneOrMany(given, flags, command);
      const actor = await readActor(flags);
      const signer = flags.dryRun ? undefined : await openSigner(context, flags);
      if (payoutId === undefined) {
        await changeMany(context, flags, actor, {
          states: REJECTED,
          to: 'queued',
          signer,
          describe: (payouts) => `Send ${payouts} again${describeSigning(signer)}`,
          describeDone: (payouts) => `${payouts} queued again`,
        });
        return;
      }
      const payout = await withOperator(context, async (operator) => operator.retry(payoutId, actor), signer);
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is queued again${describeSigning(signer)}.\n`);
    });
}

const RELEASE_HELP_AFTER = `
A payout is held when the worker finds that it may not be sent: its signature, the send journal or the policy says so,
and \`payouts get\` shows why. Remove the cause first: the worker checks a released payout again before it is
sent, and holds it again where the cause stands. What should not be paid: \`payouts cancel\`.
One that is held because it was sent before, and paid nothing, is released with the key of an operator, who signs that. The
message names the attempt; --attempt states it where it is not the payout's last.

Many at once: --batch, --message and --file (CSV with a column payout_id, as \`payouts list --csv\` writes it, or JSON
lines with payoutId) choose them, or --state held all of them; of several, a payout must meet all. They are counted and added up
before anything is changed. One that was released for the same reason before, and held again, is left: give another reason.

Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout or batch not
found. 4 refused; of many, all others were queued again. 5 the signature of the key would not count.

Examples:
  payouts release invoice-77 --reason "the producer's key is in the keyring now"
  payouts release invoice-77 invoice-78 --reason "the journal was adopted"
  payouts release --batch 2030-01-salaries --dry-run --reason "the key is in the keyring"
  payouts release invoice-77 --key /etc/payouts/ann.pem --reason "the gateway has no payment of it"
  payouts release invoice-77 --attempt 1 --key /etc/payouts/ann.pem --reason "attempt 1 paid nothing, attempt 2 never left"
  payouts release --state held --yes --reason "the journal was adopted"
`;

const HELD = ['held'] as const;

export function defineReleaseCommand(command: Command, context: CliContext): void {
  addChoiceOptions(command.argument('[payoutIds...]', 'the payouts; without them those that the options choose'), HELD);
  addActorOptions(addSigningOptions(command))
    .option('--attempt <number>', 'of one payout, with a key: the attempt that paid nothing (default: its last)')
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText('after', RELEASE_HELP_AFTER)
    .action(async (given: readonly string[], flags: ReleaseFlags) => {
      const payoutIds = requireIdsOrMany(given, flags, command);
      const actor = await readActor(flags);
      const unpaidAttempt = readAttempt(flags);
      const signer = isSigned(flags) ? await openSigner(context, flags) : undefined;
      const [payoutId] = payoutIds;
      if (payoutId === undefined || payoutIds.length > 1) {
        if (unpaidAttempt !== undefined) command.error('error: --attempt goes with one payoutId', { exitCode: 2 });
        await changeMany(context, flags, actor, {
          states: HELD,
          to: 'queued',
          signer,
          payoutIds,
          describe: (payouts) => `Release ${payouts}`,
          describeDone: (payouts) => `${payouts} queued again`,
        });
        return;
      }
      const release = async (operator: PayoutOperator): Promise<Payout> =>
        operator.release(payoutId, actor, { unpaidAttempt });
      const payout = await withOperator(context, release, signer);
      if (flags.json) context.writeJson(payout);
      else {
        const done = `Payout ${payoutId} is queued again${describeSigning(signer)}`;
        context.write(`${done}; the worker checks it before it is sent.\n`);
      }
    });
}

function readAttempt({ attempt, key, sshKey }: ReleaseFlags): number | undefined {
  if (attempt === undefined) return undefined;
  const number = Number(attempt);
  const message = !/^[1-9]\d{0,8}$/.test(attempt)
    ? `must be a whole number from 1 on, not ${JSON.stringify(attempt)}`
    : key === undefined && sshKey === undefined
      ? 'states under signature that an attempt paid nothing: give --key or --ssh-key too'
      : undefined;
  if (message !== undefined) throw new InvalidInputError([{ field: '--attempt', message }]);
  return number;
}

/** Releasing a payout that was never sent needs no key. */
function isSigned({ key, sshKey, keyName, dryRun }: ReleaseFlags): boolean {
  return dryRun !== true && [key, sshKey, keyName].some((flag) => flag !== undefined);
}
