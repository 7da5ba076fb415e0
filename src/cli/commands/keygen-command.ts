import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Option, type Command } from 'commander';
import { KEY_ROLES, type KeyRole } from '../../control/keys/keyring.js';
import { formatPublicKey } from '../../control/keys/signing-key-file.js';
import { InvalidInputError } from '../../errors.js';
import { personIdField } from '../../control/keys/person.js';
import { keyNameField, parseInput } from '../../fields.js';
import { toJsonLine } from '../../plain-text.js';
import type { CliContext } from '../context/cli-context.js';
import { z } from 'zod';

interface Flags {
  readonly role: KeyRole;
  readonly person: string;
  readonly out: string;
  readonly json?: true;
}

const HELP_AFTER = `
Makes an Ed25519 key pair. The private key goes into the file (PKCS#8 PEM, mode 0600); a file that exists is never overwritten.
What is printed is the public key, as an entry of the keyring (PAYOUT_KEYS_FILE).

Roles:
  producer   signs payouts
  approver   signs that a payout may be paid, or must not be
  operator   states what became of a send, lifts pauses
  worker     signs what became of a payout

Examples:
  payouts keygen shop-2030 --role producer --person shop-backend --out ./secrets/shop-2030.pem
  (echo 'version: 1'; echo 'keys:'; payouts keygen shop --role producer --person shop --out shop.pem) > keys.yaml
  payouts keys check keys.yaml
`;

/** Defines `payouts keygen`. */
export function defineKeygenCommand(command: Command, context: CliContext): void {
  command
    .argument('<name>', 'the name of the key: 1 to 32 of A-Z a-z 0-9 . _ -')
    .addOption(new Option('--role <role>', 'what it may sign (required)').choices(KEY_ROLES).makeOptionMandatory())
    .requiredOption(
      '--person <person>',
      'whose key it is, as an id of a-z 0-9 . _ -; a person with several keys has one id (required)',
    )
    .requiredOption('--out <file>', 'where the private key is written (required)')
    .option('--json', 'print {name, role, person, public} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action((name: string, { role, out, json, ...given }: Flags) => {
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

/** One line of YAML, below `keys:`. A JSON string is one of YAML, whatever it contains. */
function formatEntry(entry: Readonly<Record<string, string>>): string {
  const fields = Object.entries(entry).map(([field, value]) => `${field}: ${toJsonLine(value).trimEnd()}`);
  return `  - { ${fields.join(', ')} }\n`;
}
