import type { StoredSignature } from '../../ledger/control-record.js';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { KEY_ROLES, type KeyFinder, type KeyRole, readKeyringFile } from '../../control/keys/keyring.js';
import { personIdField } from '../../control/keys/person.js';
import { intentOf } from '../../control/intents/intent.js';
import { formatPublicKey } from '../../control/keys/signing-key.js';
import { type IntentVerdict, verifyIntent } from '../../control/intents/verify-intent.js';
import { InvalidInputError, NotVerifiedError } from '../../base/errors.js';
import { keyNameField, parseInput } from '../../base/fields.js';
import type { Payout } from '../../ledger/payout.js';
import { toJsonLine } from '../../base/plain-text.js';
import { readPayout, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { requireKeyring, requireKeys } from '../context/signing.js';
import { formatTable } from '../output/format-table.js';
import { type KeyView, toKeyViews, warnOfKeys } from './describe-keys.js';

interface GenerateFlags {
  readonly role: KeyRole;
  readonly person: string;
  readonly out: string;
  readonly json?: true;
}

const HELP_AFTER = `
The keyring is a YAML or JSON file with the public keys of those whose signatures count: \`version: 1\` and a list \`keys\`. Make
entries with \`payouts keys generate\`. A person is an id of a-z 0-9 . _ -; \`people: { ann: Ann Lee }\` gives display names, which
decide nothing.

Examples:
  payouts keys generate shop-2030 --role producer --person shop-backend --out ./secrets/shop-2030.pem
  payouts keys check
  payouts keys verify invoice-77
`;

const GENERATE_HELP_AFTER = `
Makes an Ed25519 key pair. The private key goes into the file (PKCS#8 PEM, mode 0600); a file that exists is never overwritten.
What is printed is the public key, as an entry of the keyring (PAYOUT_KEYS_FILE).

Roles:
  producer   signs payouts
  approver   signs that a payout may be paid, or must not be
  operator   states what became of a send, lifts pauses
  worker     signs what became of a payout

Examples:
  payouts keys generate shop-2030 --role producer --person shop-backend --out ./secrets/shop-2030.pem
  (echo 'version: 1'; echo 'keys:'; payouts keys generate shop --role producer --person shop --out shop.pem) > keys.yaml
  payouts keys check keys.yaml
`;

const CHECK_HELP_AFTER = `
Nobody but root and the user of this process may be able to write the file, or its folder.
Exit code 2: the file cannot be used; every problem is named.

Examples:
  payouts keys check
  payouts keys check ./keys.yaml --json | jq -r .name
`;

const SIGN_HELP_AFTER = `
Reads payouts as \`payouts import\` does, and writes them as JSON lines with key, signature, issuedAt, expiresAt and audience, for
\`payouts import\` or PayoutProducer.enqueue on another host. Needs GATEWAY_PLATFORM_ID, PAYOUT_SIGNING_KEY_FILE,
PAYOUT_SIGNING_KEY_NAME, and PAYOUT_AUDIENCE or GATEWAY_BASE_URL, which say for which environment; no Redis. A signature holds for 7 days; lines that are signed already are signed again.

Every row is checked before the first one is written. If any row has an error, nothing is written (exit code 2).
A file has at most 250,000 rows: split a longer one.

Examples:
  payouts keys sign < payouts.jsonl > signed.jsonl
  payouts keys sign salaries.csv | ssh queue-host payouts import - --yes
`;

const VERIFY_HELP_AFTER = `
Rebuilds what was signed from what is in Redis, and verifies it with the keyring of PAYOUT_KEYS_FILE, as a worker does before it
sends. An expired signature does not count, also of a payout that was sent before it expired.

Exit codes: 0 verified. 3 payout not found. 5 not verified; the message says which check failed.

Examples:
  payouts keys verify invoice-77
  payouts keys verify invoice-77 --json | jq .verified
`;

export function defineKeysCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  addGenerate(command, context);
  addCheck(command, context);
  addSign(command, context);
  addVerify(command, context);
}

function addGenerate(parent: Command, context: CliContext): void {
  parent
    .command('generate')
    .description('make a signing key, and the entry of the keyring for it')
    .argument('<name>', 'the name of the key: 1 to 32 of A-Z a-z 0-9 . _ -')
    .addOption(new Option('--role <role>', 'what it may sign (required)').choices(KEY_ROLES).makeOptionMandatory())
    .requiredOption(
      '--person <person>',
      'whose key it is, as an id of a-z 0-9 . _ -; a person with several keys has one id (required)',
    )
    .requiredOption('--out <file>', 'where the private key is written (required)')
    .option('--json', 'print {name, role, person, public} as JSON')
    .addHelpText('after', GENERATE_HELP_AFTER)
    .action((name: string, { role, out, json, ...given }: GenerateFlags) => {
      const schema = z.object({ name: keyNameField, '--person': personIdField });
      const { '--person': person } = parseInput(schema, { name, '--person': given.person });
      const { privateKey } = generateKeyPairSync('ed25519');
      writeKey(out, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
      const entry = { name, role, person, public: formatPublicKey(privateKey) };
      if (json) context.writeJson(entry);
      else context.write(formatEntry(entry));
    });
}

function writeKey(path: string, pem: string): void {
  try {
    writeFileSync(path, pem, { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem =
      code === 'EEXIST'
        ? 'exists already, and a key is never overwritten: name another file'
        : `cannot be written: ${message}`;
    throw new InvalidInputError([{ field: '--out', message: `${problem} (got "${path}")` }]);
  }
}

/** Every JSON string is a YAML string. */
function formatEntry(entry: Readonly<Record<string, string>>): string {
  const fields = Object.entries(entry).map(([field, value]) => `${field}: ${toJsonLine(value).trimEnd()}`);
  return `  - { ${fields.join(', ')} }\n`;
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
    .addHelpText('after', CHECK_HELP_AFTER)
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
  write(rows.length === 0 ? 'The keyring has no keys.\n' : formatTable([head.map(colours.dim), ...rows]));
}

function addSign(parent: Command, context: CliContext): void {
  parent
    .command('sign')
    .description('sign payouts in a file, without Redis, to enqueue them elsewhere')
    .argument('[file]', 'the file', '-')
    .addHelpText('after', SIGN_HELP_AFTER)
    .action(async (path: string) => {
      // The other commands read no rows.
      const { signPayouts } = await import('./sign-payouts.js');
      await signPayouts(path, context);
    });
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
    .addHelpText('after', VERIFY_HELP_AFTER)
    .action(async (payoutId: string, { json }: { readonly json?: true }) => {
      const keyring = requireKeyring(context.environment);
      const { payout, platformId } = await withAccount(context, async ({ ledger }) => ({
        payout: await readPayout(ledger, payoutId),
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
const UNSIGNED: Omit<StoredSignature, 'key' | 'signature'> = { issuedAt: '', expiresAt: '' };

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
