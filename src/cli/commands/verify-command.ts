import type { Command } from 'commander';
import type { KeyFinder } from '../../control/keys/keyring.js';
import { intentOf } from '../../control/intents/signed-payout.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import { verifyIntent, type IntentVerdict } from '../../control/intents/verify-intent.js';
import { NotVerifiedError } from '../../errors.js';
import type { Payout } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { requireKeyring } from '../context/keyring.js';
import { readPayout } from '../context/read-payout.js';
import { withAccount } from '../context/with-account.js';

const HELP_AFTER = `
Rebuilds what was signed from what is in Redis, and verifies it with the keyring of PAYOUT_KEYS_FILE, as a worker does before it
sends. An expired signature does not count, also of a payout that was sent before it expired.

Exit codes: 0 verified. 3 payout not found. 5 not verified; the message says which check failed.

Examples:
  payouts verify invoice-77
  payouts verify invoice-77 --json | jq .verified
`;

/** Defines `payouts verify`. */
export function defineVerifyCommand(command: Command, context: CliContext): void {
  command
    .argument('<payoutId>', 'the payout')
    .option(
      '--json',
      'print {payoutId, verified, fault, message, signedBy, person, requestedBy, issuedAt, expiresAt} as JSON',
    )
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string, { json }: { readonly json?: true }) => {
      const keyring = requireKeyring(context.environment);
      const { payout, platformId } = await withAccount(context, async ({ ledger }) => ({
        payout: await readPayout(ledger, payoutId),
        platformId: ledger.connection.platformId,
      }));
      const verdict = verifyPayout(platformId, payout, keyring);
      if (json) context.writeJson(toJson(payout, verdict));
      if (verdict.kind === 'refused')
        throw new NotVerifiedError(`Payout ${payoutId} is not verified. ${verdict.message}`);
      if (!json) context.write(describe(payoutId, verdict, payout.signed));
    });
}

function verifyPayout(platformId: number, payout: Payout, keyring: KeyFinder): IntentVerdict {
  const { signed } = payout;
  return verifyIntent(intentOf(platformId, payout, signed ?? UNSIGNED), signed, keyring, Date.now());
}

/** Never looked at: without a signature that is what the verdict says. */
const UNSIGNED: Omit<StoredSignature, 'key' | 'signature'> = { issuedAt: '', expiresAt: '' };

function describe(
  payoutId: string,
  { signer: { name, person } }: Extract<IntentVerdict, { kind: 'verified' }>,
  signed: StoredSignature | undefined,
): string {
  const requested = signed?.requestedBy === undefined ? '' : `, requested by ${signed.requestedBy}`;
  return `Payout ${payoutId} is verified: signed by key "${name}" of ${person}${requested}, until ${signed?.expiresAt ?? ''}.\n`;
}

function toJson({ payoutId, signed }: Payout, verdict: IntentVerdict): object {
  const facts = {
    signedBy: signed?.key,
    requestedBy: signed?.requestedBy,
    issuedAt: signed?.issuedAt,
    expiresAt: signed?.expiresAt,
  };
  if (verdict.kind === 'verified') return { payoutId, verified: true, person: verdict.signer.person, ...facts };
  return { payoutId, verified: false, fault: verdict.fault, message: verdict.message, ...facts };
}
