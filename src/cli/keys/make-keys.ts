import { generateKeyPairSync } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { keyNameField, parseInput } from '../../base/fields.js';
import { toJsonLine } from '../../base/plain-text.js';
import { checkTrustedFolder } from '../../base/trusted-file.js';
import { KEY_ROLES, type KeyRole } from '../../control/keys/keyring.js';
import { namesPerson, personIdField } from '../../control/keys/person.js';
import { formatPublicKey } from '../../control/keys/signing-key.js';
import { findExisting, findPresent, makeFolder } from '../../journal/journal-files.js';
import { readJournal } from '../../journal/journal-reader.js';
import { formatCommand, shellQuote } from '../../operator/next-steps.js';
import { type JournalFolder, readJournalFolder, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help, readVariable, refuse, systemUser } from '../context/flags.js';
import { readAudience } from '../context/keys.js';

interface GenerateFlags {
  readonly role: KeyRole;
  readonly person: string;
  readonly out: string;
  readonly json?: true;
}

export function addGenerate(parent: Command, context: CliContext): void {
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
    .addHelpText(
      'after',
      help(
        `Makes an Ed25519 key pair. The private key goes into a new file (PKCS#8 PEM, mode 0600); the command prints the entry for the keyring.
A producer signs payouts, an approver signs decisions about them, an operator signs what became of a send, and a worker signs final
states.`,
        'payouts keys generate shop-2030 --role producer --person shop-backend --out ./secrets/shop-2030.pem',
        "(echo 'version: 1'; echo 'keys:'; payouts keys generate shop --role producer --person shop --out shop.pem) > keys.yaml",
      ),
    )
    .action((name: string, { role, out, json, ...given }: GenerateFlags) => {
      const schema = z.object({ name: keyNameField, '--person': personIdField });
      const { '--person': person } = parseInput(schema, { name, '--person': given.person });
      const { pem, entry } = makeKey(name, role, person);
      writeNew('--out', out, pem, KEY_MODE);
      if (json) context.writeJson(entry);
      else context.write(formatEntry(entry));
    });
}

const KEY_MODE = 0o600;
const PUBLIC_MODE = 0o644;

interface KeyEntry {
  readonly name: string;
  readonly role: KeyRole;
  readonly person: string;
  readonly public: string;
}

function makeKey(name: string, role: KeyRole, person: string): { readonly pem: string; readonly entry: KeyEntry } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { pem, entry: { name, role, person, public: formatPublicKey(privateKey) } };
}

/**
 * Leaves no part of a file that could not be written.
 * @param field - that names the file, for errors
 */
function writeNew(field: string, path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode, flush: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') {
      return refuse(field, `exists already, and a key is never overwritten: name another file (got "${path}")`);
    }
    if (existsSync(path)) rmSync(path);
    refuse(field, `cannot be written: ${message} (got "${path}")`);
  }
}

/** Every JSON string is a YAML string. */
function formatEntry(entry: KeyEntry): string {
  const fields = Object.entries(entry).map(([field, value]) => `${field}: ${toJsonLine(value).trimEnd()}`);
  return `  - { ${fields.join(', ')} }\n`;
}

const PRODUCER = 'shop';
const WORKER = 'worker-1';

interface InitFlags {
  readonly operator?: string;
  /** Off with `--no-adopt`. */
  readonly adopt: boolean;
  readonly json?: true;
}

export function addInit(parent: Command, context: CliContext): void {
  parent
    .command('init')
    .description('make what signed payouts need: keys of producer, operator and worker, keyring, policy')
    .argument('<dir>', 'the folder of the files; made if it is missing')
    .option('--operator <id>', "the operator's id and name of the key (default: the current user)")
    .option('--no-adopt', 'leave the send journal alone')
    .option('--json', 'print {platformId, dir, keys, keysFile, policyFile, environment, journal} as JSON')
    .addHelpText(
      'after',
      help(
        `Never overwrites a file. Prints the environment of each host, which a shell can read. Run it as the worker's user on its host, then
move the keys of producer and operator to their hosts. With PAYOUT_ACCOUNTS_FILE, signing key, policy and audience belong into the
account's entry.

For a new account, it also states what \`payouts audit adopt-journal\` states. An account that sent anything is left alone, and the
command is printed. Redis may be down: the files are made all the same.`,
        'payouts keys init ./keys > payouts.env',
        'payouts keys init /etc/payouts --operator ann --json | jq .environment.worker',
      ),
    )
    .action(async (given: string, flags: InitFlags) => initKeys(context, given, flags));
}

/** All that can be refused is read before the first file is made. */
async function initKeys(
  context: CliContext,
  given: string,
  { operator: named = systemUser(), adopt, json }: InitFlags,
): Promise<void> {
  const { environment } = context;
  const folder = readJournalFolder(context);
  const { platformId } = folder;
  const operator = parseOperator(named);
  const own = readVariable('PAYOUT_AUDIENCE', environment);
  const audience = environment['GATEWAY_BASE_URL'] ? readAudience(environment) : own;
  // The variable may name the file that is made now.
  const hadKeyring = existsSync(readVariable('PAYOUT_KEYS_FILE', environment) ?? '');
  const files = await makeFiles(given, operator, platformId);
  const obstacle = !adopt
    ? 'you gave --no-adopt'
    : hadKeyring
      ? 'PAYOUT_KEYS_FILE named a keyring before, so earlier signatures may count'
      : await adoptIfNew(context, folder);
  const journal = { dir: resolve(folder.dir), ...toAdoption(obstacle, platformId) };
  const variables = toVariables(files, audience, own);
  if (json) context.writeJson({ platformId, ...files, environment: variables, journal });
  else {
    context.write(describeFiles(files, variables, platformId));
    context.writeError(describeAdoption(journal, platformId));
  }
}

function parseOperator(given: string): string {
  const schema = z.object({ '--operator': personIdField.pipe(keyNameField) });
  const { '--operator': operator } = parseInput(schema, { '--operator': given });
  const taken = [PRODUCER, WORKER].find((id) => namesPerson(id, operator));
  if (taken !== undefined) refuse('--operator', `looks like the key ${taken}: name another id (got "${operator}")`);
  return operator;
}

interface KeyFiles {
  readonly dir: string;
  readonly keys: readonly (KeyEntry & { readonly file: string })[];
  readonly keysFile: string;
  readonly policyFile: string;
}

async function makeFiles(given: string, operator: string, platformId: number): Promise<KeyFiles> {
  const dir = resolve(given);
  const made = [
    makeKey(PRODUCER, 'producer', PRODUCER),
    makeKey(operator, 'operator', operator),
    makeKey(WORKER, 'worker', WORKER),
  ].map(({ pem, entry }) => ({ pem, entry, file: join(dir, `${entry.role}.pem`) }));
  const [keysFile, policyFile] = [join(dir, 'keys.yaml'), join(dir, 'policy.yaml')];
  const entries = made.map(({ entry }) => entry);
  await prepareFolder(dir);
  // The keyring is last: without it, nothing that was written before counts.
  writeAllNew(dir, [
    ...made.map(({ file, pem }) => ({ path: file, text: pem, mode: KEY_MODE })),
    { path: policyFile, text: toPolicy(platformId), mode: PUBLIC_MODE },
    { path: keysFile, text: toKeyring(entries), mode: PUBLIC_MODE },
  ]);
  return { dir, keys: made.map(({ entry, file }) => ({ ...entry, file })), keysFile, policyFile };
}

/** Before a private key is in it: who can write a folder above could replace the keyring. */
async function prepareFolder(dir: string): Promise<void> {
  // The printed environment has one line for each variable.
  if (/\p{Cc}/u.test(dir)) refuse('dir', `must not have control characters (got ${JSON.stringify(dir)})`);
  try {
    checkTrustedFolder(await findExisting(dir));
    await makeFolder(dir);
  } catch (error) {
    refuse('dir', `${(error as Error).message} (got "${dir}")`);
  }
}

interface NewFile {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

/** All or none, unless the process is killed. */
function writeAllNew(dir: string, files: readonly NewFile[]): void {
  const present = files.filter(({ path }) => existsSync(path)).map(({ path }) => basename(path));
  if (present.length > 0) {
    const message = `has ${present.join(', ')} already, and nothing is overwritten: name another folder`;
    refuse('dir', `${message} (got "${dir}")`);
  }
  const written: string[] = [];
  try {
    for (const { path, text, mode } of files) {
      writeNew('dir', path, text, mode);
      written.push(path);
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw error;
  }
}

function toKeyring(entries: readonly KeyEntry[]): string {
  return `# The public keys whose signatures count, the same on every host. Add those of \`payouts keys generate\`.
keys:
${entries.map(formatEntry).join('')}# Display names, such as { ann: Ann Lee }.
people: {}
# At the end: a file that was cut short is refused.
version: 1
`;
}

function toPolicy(platformId: number): string {
  return `# What may leave account ${platformId}. Set the caps a little above your largest payout and your busiest day, then run
# \`payouts policy check\` with this file. docs/control.md says what other rules there are.
version: 1
platformId: '${platformId}'
default: hold # what no rule with a cap covers
usd: { maxAge: 15m, maxMove: '25%' } # which rates of the gateway count
rules:
  - { name: one-payout, cap: { usd: '500' }, over: refuse } # a larger one is held until this cap is raised
  - { name: day, cap: { usd: '5000', within: 24h }, over: wait } # more waits until there is room
`;
}

/**
 * Adopts the journal of an account for which nothing was ever sent, as {@link addInit}'s help says. The keys are new, so
 * a Redis that was emptied brings no older signature that counts.
 * @returns why it was not adopted
 */
async function adoptIfNew(context: CliContext, { dir, platformId }: JournalFolder): Promise<string | undefined> {
  try {
    if ((await readJournal(dir, platformId)) !== undefined) return `${resolve(dir)} has a send journal of it already`;
    const owner = (await findPresent(dir))?.uid ?? 0;
    // A worker could not write a file of root.
    if (process.getuid?.() === 0 && owner !== 0) return `${resolve(dir)} belongs to user ${owner}, and you are root`;
    const { withJournal } = await import('../audit/audit-command.js');
    return await withAccount(context, async ({ ledger }) => {
      const trace = await ledger.findSenderTrace();
      if (trace !== undefined) return `the account is not new: ${trace}`;
      return withJournal({ dir, platformId }, async (journal) => {
        // Asked again, because a worker may have begun before the journal did.
        const since = await ledger.findSenderTrace();
        if (since !== undefined) return `the account is not new: ${since}`;
        await journal.noteComplete({ at: Date.now(), by: systemUser(), reason: 'new account, nothing was sent yet' });
        return undefined;
      });
    });
  } catch (error) {
    return (error as Error).message;
  }
}

const ADOPT_ARGS = ['--reason', 'first start with keys'];

function toAdoption(obstacle: string | undefined, platformId: number) {
  if (obstacle === undefined) return { adopted: true } as const;
  const command = formatCommand({ name: 'audit adopt-journal', args: ADOPT_ARGS }, platformId);
  return { adopted: false, reason: obstacle, command } as const;
}

function describeAdoption(
  { dir, ...adoption }: { readonly dir: string } & ReturnType<typeof toAdoption>,
  platformId: number,
): string {
  if (adoption.adopted) return `The send journal in ${dir} counts as complete: account ${platformId} is new.\n`;
  return `Warning: the send journal of account ${platformId} is not adopted: ${adoption.reason}.
A worker holds what was signed before its journal began. On the worker's host, compare the account's payouts with the gateway's
records, then run
  ${adoption.command}
`;
}

/**
 * For each kind of host.
 * @param audience - of the account, if the environment says it
 * @param own - the audience that the environment sets; a worker's default is that of its gateway
 */
function toVariables({ keys, keysFile, policyFile }: KeyFiles, audience: string | undefined, own: string | undefined) {
  const fileOf = (role: KeyRole): string => keys.find((key) => key.role === role)?.file ?? '';
  return {
    producer: {
      PAYOUT_SIGNER: fileOf('producer'),
      PAYOUT_SIGNER_NAME: PRODUCER,
      PAYOUT_AUDIENCE: audience,
    },
    worker: {
      PAYOUT_KEYS_FILE: keysFile,
      PAYOUT_POLICY_FILE: policyFile,
      PAYOUT_WORKER_SIGNER: fileOf('worker'),
      PAYOUT_WORKER_SIGNER_NAME: WORKER,
      PAYOUT_AUDIENCE: own,
    },
    operator: { PAYOUT_KEYS_FILE: keysFile, PAYOUT_AUDIENCE: audience },
  };
}

/** A file of environment lines, with comments. */
function describeFiles(
  { keys, policyFile }: KeyFiles,
  { producer, worker, operator }: ReturnType<typeof toVariables>,
  platformId: number,
): string {
  const key = keys.find(({ role }) => role === 'operator')?.file ?? '';
  const unknown = `# PAYOUT_AUDIENCE is missing here: \`payouts doctor\` on the worker's host shows it.\n`;
  return `# Signed payouts of account ${platformId}.
# In production, keep producer.pem and operator.pem off the worker's host: with them, someone who takes it over can pay himself.

# The producer's host
${toLines(producer)}${producer.PAYOUT_AUDIENCE === undefined ? unknown : ''}
# The worker's host. First edit the caps: ${shellQuote(policyFile)}
${toLines(worker)}
# The operator's machine. Decisions are signed with --key ${shellQuote(key)}
${toLines(operator)}`;
}

function toLines(variables: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(variables)
    .map(([name, value]) => (value === undefined ? '' : `${name}=${shellQuote(value)}\n`))
    .join('');
}
