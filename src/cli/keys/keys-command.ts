import type { StoredSignature } from '../../ledger/control-record.js';
import type { Command } from 'commander';
import { type KeyFinder, readKeyringFile } from '../../control/keys/keyring.js';
import { PayoutSigner } from '../../control/intents/intent-signer.js';
import { systemClock } from '../../base/clock.js';
import { intentOf } from '../../control/intents/intent.js';
import { type IntentVerdict, verifyIntent } from '../../control/intents/verify-intent.js';
import { NotVerifiedError } from '../../base/errors.js';
import type { NewPayout, Payout } from '../../ledger/payout.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { readAudience, requireKeyring, requireKeys, requirePayoutSigner } from '../context/keys.js';
import { help, readVariable } from '../context/flags.js';
import { checkFile, refuseUnusable } from '../import/check-rows.js';
import { openSource } from '../import/open-source.js';
import { formatTable } from '../output/format-table.js';
import { type KeyView, toKeyViews, warnOfKeys } from './describe-keys.js';
import { addGenerate, addInit } from './make-keys.js';

export function defineKeysCommand(command: Command, context: CliContext): void {
  command.addHelpText(
    'after',
    help(
      'The keyring is a YAML or JSON file with the public keys of those whose signatures count (docs/control.md).',
      'payouts keys init ./keys > payouts.env',
      'payouts keys generate shop-2030 --role producer --person shop-backend --out ./secrets/shop-2030.pem',
      'payouts keys check',
      'payouts keys verify invoice-77',
    ),
  );
  addInit(command, context);
  addGenerate(command, context);
  addCheck(command, context);
  addSign(command, context);
  addVerify(command, context);
}

function addCheck(parent: Command, context: CliContext): void {
  parent
    .command('check')
    .description('show every key of a keyring, and what is wrong with it')
    .argument('[file]', 'the keyring (default: PAYOUT_KEYS_FILE)')
    .option(
      '--json',
      'print each key as one line of JSON {name, role, person, displayName, notBefore, notAfter, status}',
    )
    .addHelpText(
      'after',
      help(
        'Only root and the user of this process may be able to write the file and its folder. Exit code 2: it cannot be used.',
        'payouts keys check',
        'payouts keys check ./keys.yaml --json | jq -r .name',
      ),
    )
    .action((file: string | undefined, { json }: { readonly json?: true }) => {
      const keyring = file === undefined ? requireKeys(context.environment) : readKeyringFile(file, 'file');
      const now = Date.now();
      const keys = toKeyViews(keyring, now);
      if (json) keys.forEach(context.writeJson);
      else writeKeys(keys, context);
      context.writeError(warnOfKeys(keys, now));
    });
}

function writeKeys(keys: readonly KeyView[], { write, colours }: CliContext): void {
  const head = ['KEY', 'ROLE', 'PERSON', 'FROM', 'UNTIL', 'STATUS'];
  const rows = keys.map(({ name, role, person, displayName, notBefore = '', notAfter = '', status }) => {
    const shown = status === 'valid' ? status : colours.yellow(status);
    return [name, role, displayName === undefined ? person : `${person} (${displayName})`, notBefore, notAfter, shown];
  });
  write(rows.length === 0 ? 'The keyring has no keys.\n' : formatTable([head.map(colours.dim), ...rows], [], [0]));
}

function addSign(parent: Command, context: CliContext): void {
  parent
    .command('sign')
    .description('sign payouts in a file, without Redis, to enqueue them elsewhere')
    .argument('[file]', 'the file', '-')
    .addHelpText(
      'after',
      help(
        `Reads payouts as \`payouts import\` does, and writes them as JSON lines for \`payouts import\` on another host (docs/import.md).
Needs GATEWAY_PLATFORM_ID, PAYOUT_SIGNER, PAYOUT_SIGNER_NAME, and PAYOUT_AUDIENCE or GATEWAY_BASE_URL. If any row
has an error, nothing is written (exit code 2).`,
        'payouts keys sign < payouts.jsonl > signed.jsonl',
        'payouts keys sign salaries.csv | ssh queue-host payouts import - --yes',
      ),
    )
    .action(async (path: string) => signFile(path, context));
}

/** @throws InvalidInputError if any row has an error; nothing is written then */
async function signFile(path: string, context: CliContext): Promise<void> {
  const { environment } = context;
  const platformId = readVariable('GATEWAY_PLATFORM_ID', environment);
  const audience = readAudience(environment);
  const signer = new PayoutSigner({
    signer: requirePayoutSigner(environment),
    platformId,
    audience,
    clock: systemClock,
  });
  const signal = context.stopSignal();
  const source = await openSource(path, signal);
  const checksums = readVariable('PAYOUT_CHECK_ADDRESSES', environment);
  const check = (payout: NewPayout): void => {
    signer.check(withoutSignature(payout));
  };
  const file = await checkFile(context, source, { checksums, check }, signal);
  refuseUnusable(source, file.check, 'signed', 'fix them');
  const payouts = file.checked.map(({ payout }) => withoutSignature(payout));
  // Printed at the end, because a signer may fail in the middle.
  const lines = await signer.signAll(payouts);
  for (const { signed, ...fields } of lines) context.writeJson({ ...fields, ...signed });
}

function withoutSignature(payout: NewPayout): NewPayout {
  return payout.signed === undefined ? payout : { ...payout, signed: undefined };
}

function addVerify(parent: Command, context: CliContext): void {
  parent
    .command('verify')
    .description('verify the signature of a payout in the queue')
    .argument('<payoutId>', 'the payout')
    .option(
      '--json',
      'print {payoutId, verified, fault, message, signedBy, person, requestedBy, issuedAt, expiresAt} as JSON',
    )
    .addHelpText(
      'after',
      help(
        `Verifies what is in Redis with the keyring of PAYOUT_KEYS_FILE, as a worker does before it sends. An expired signature does not
count. Exit code 5: not verified; the message says why.`,
        'payouts keys verify invoice-77',
        'payouts keys verify invoice-77 --json | jq .verified',
      ),
    )
    .action(async (payoutId: string, { json }: { readonly json?: true }) => {
      const keyring = requireKeyring(context.environment);
      const { payout, platformId } = await withAccount(context, async ({ ledger }) => ({
        payout: await ledger.require(payoutId),
        platformId: ledger.connection.platformId,
      }));
      const verdict = verifyPayout(platformId, payout, keyring);
      if (json) context.writeJson(toVerdictJson(payout, verdict));
      if (verdict.kind === 'refused')
        throw new NotVerifiedError(`Payout ${payoutId} is not verified. ${verdict.message}`);
      if (!json) context.write(describeVerified(payoutId, verdict, payout.signed));
    });
}

function verifyPayout(platformId: number, payout: Payout, keyring: KeyFinder): IntentVerdict {
  const { signed } = payout;
  return verifyIntent(intentOf(platformId, payout, signed ?? UNSIGNED), signed, keyring, Date.now());
}

/** Never read: without a signature the verdict says so. */
const UNSIGNED: Omit<StoredSignature, 'key' | 'signature'> = { audience: '', issuedAt: '', expiresAt: '' };

function describeVerified(
  payoutId: string,
  { signer: { name, person } }: Extract<IntentVerdict, { kind: 'verified' }>,
  signed: StoredSignature | undefined,
): string {
  const requested = signed?.requestedBy === undefined ? '' : `, requested by ${signed.requestedBy}`;
  return `Payout ${payoutId} is verified: signed by key "${name}" of ${person}${requested}, until ${signed?.expiresAt ?? ''}.\n`;
}

function toVerdictJson({ payoutId, signed }: Payout, verdict: IntentVerdict): object {
  const facts = {
    signedBy: signed?.key,
    requestedBy: signed?.requestedBy,
    issuedAt: signed?.issuedAt,
    expiresAt: signed?.expiresAt,
  };
  if (verdict.kind === 'verified') return { payoutId, verified: true, person: verdict.signer.person, ...facts };
  return { payoutId, verified: false, fault: verdict.fault, message: verdict.message, ...facts };
}
