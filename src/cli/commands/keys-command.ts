import type { Command } from 'commander';
import { readKeyringFile } from '../../control/keys/keyring-file.js';
import type { CliContext } from '../context/cli-context.js';
import { requireKeys } from '../context/keyring.js';
import { toKeyViews, warnOfKeys, type KeyView } from '../keys/describe-keys.js';
import { formatTable } from '../output/format-table.js';

const HELP_AFTER = `
The keyring is a YAML or JSON file with the public keys of those whose signatures count: \`version: 1\` and a list \`keys\`. Make
entries with \`payouts keygen\`. A person is an id of a-z 0-9 . _ -; \`people: { ann: Ann Lee }\` gives display names, which decide nothing.

Examples:
  payouts keys check
`;

const CHECK_HELP_AFTER = `
Nobody but root and the user of this process may be able to write the file, or its folder.
Exit code 2: the file cannot be used; every problem is named.

Examples:
  payouts keys check
  payouts keys check ./keys.yaml --json | jq -r .name
`;

/** Defines `payouts keys`. */
export function defineKeysCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  command
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
