import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { z } from 'zod';
import { LONGEST_TIMER_MS } from '../src/base/clock.js';
import { SETTING_SECTIONS, type Setting, type SettingTable } from '../src/base/setting.js';
import { ACCOUNT_SETTINGS, COMMAND_SETTINGS, SETTINGS } from '../src/base/settings.js';

/** docs/configuration.md and .env.example, made from the rows in src/base/ and the comments above them. */

const ROWS: readonly (readonly [name: string, row: Setting])[] = Object.entries(SETTINGS);

export function renderSettingsDoc(): string {
  const comments = readComments();
  const sections = Object.entries(SETTING_SECTIONS).map(([section, title]) => {
    const rows = ROWS.filter(([, row]) => row.section === section);
    return `## ${title}\n\n${renderRows(rows, comments)}`;
  });
  return `<!-- Made by \`npm run docs\` from src/base/settings.ts: change the rows there. -->

# Configuration

The \`payouts\` command reads the environment; an empty variable counts as not set. For a variable with an asterisk, \`…_FILE\` names a file that holds the value. \`payouts doctor\` checks the settings. A program passes the same settings as options, named in brackets, with the same rules and defaults (\`journalDir\` has none). Each line has in italics the default and what is allowed.

${sections.join('\n\n')}

## Several accounts

\`PAYOUT_ACCOUNTS_FILE\` names a JSON file. Each account has its own sender, queues, journal and pause. What an account does not set comes from the environment.

\`\`\`json
[
  { "platformId": 4242, "baseUrl": "https://gateway.example", "secretKeyFile": "./4242.key" },
  { "platformId": 4243, "baseUrl": "https://gateway.example", "secretKeyFile": "./4243.key", "intervalMs": 1500 }
]
\`\`\`

Commands for operators work on one account (\`--account ID\`). \`payouts worker\`, \`dashboard\`, \`notify\` and \`doctor\` serve all of the file. Workers with the same file [share](deploy.md#several-processes) its accounts.

Paths are relative to the accounts file. An account may set \`secretKeyFile\`, \`signer\` with \`signerName\`, and ${Object.keys(
    ACCOUNT_SETTINGS,
  )
    .map((name) => `\`${name}\``)
    .join(', ')}. Each account needs a policy of its own.
`;
}

export function renderEnvExample(): string {
  const sections = Object.entries(SETTING_SECTIONS).map(([section, title]) => {
    const rows = ROWS.filter(([, row]) => row.section === section);
    return `# ${title}\n${rows.map(([, row]) => exampleLines(row)).join('')}`;
  });
  return `# Made by \`npm run docs\`: every variable of payout-queue. For docker-compose.yml, copy to .env and change what
# differs; the command itself reads no .env. docs/configuration.md explains each one. In docker-compose.yml the paths, hosts
# and ports inside the containers are set.

${sections.join('\n')}`;
}

function exampleLines(row: Setting): string {
  const { variable, secret, example = '' } = row;
  const fromFile = secret ? `# Or ${variable}_FILE, which names a file that holds it\n` : '';
  if ('default' in row) return `${fromFile}${variable}=${row.default}\n`;
  const absent = 'absent' in row ? `# Unset: ${row.absent.replaceAll('`', '')}\n` : '';
  return secret
    ? `${absent}# Or ${variable}, the value itself\n${variable}_FILE=${example}\n`
    : `${absent}${variable}=${example}\n`;
}

function renderRows(rows: typeof ROWS, comments: ReadonlyMap<string, string>): string {
  const commandOnly: SettingTable = COMMAND_SETTINGS;
  const lines = rows.map(([name, row]) => {
    const option = name in commandOnly ? '' : ` (\`${name}\`)`;
    const allowed = [describeDefault(row), describeRule(row.rule)].filter((text) => text !== '').join('; ');
    return `- \`${row.variable}\`${row.secret ? '\\*' : ''}${option}, _${allowed}_: ${comments.get(name) ?? ''}`;
  });
  return lines.join('\n');
}

function describeDefault(row: Setting): string {
  if ('required' in row) return 'required';
  if ('absent' in row) return `unset: ${row.absent}`;
  return `\`${row.default}\`${row.unit === undefined ? '' : ` ${row.unit}`}`;
}

function describeRule(rule: z.ZodType): string {
  if (rule instanceof z.ZodBoolean) return '`true`, `false`';
  if (rule instanceof z.ZodEnum) return rule.options.map((option) => `\`${option}\``).join(', ');
  if (!(rule instanceof z.ZodNumber)) return '';
  const { minValue, maxValue } = rule;
  const lowest = minValue === null || rule.safeParse(minValue).success ? minValue : minValue + 1;
  return maxValue === null || maxValue >= LONGEST_TIMER_MS ? `≥ ${lowest}` : `${lowest} – ${maxValue}`;
}

const SETTINGS_FILES = ['account-settings.ts', 'settings.ts'];

/** The comment above each row, by the row's name: what an editor shows for the option is also its line in the docs. */
function readComments(): Map<string, string> {
  const comments = new Map<string, string>();
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text in SETTINGS) {
      const text = ts.getJSDocCommentsAndTags(node).map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '');
      comments.set(node.name.text, text.join(' ').replace(/\s+/g, ' '));
    }
    ts.forEachChild(node, visit);
  };
  for (const name of SETTINGS_FILES) {
    const text = readFileSync(new URL(`../src/base/${name}`, import.meta.url), 'utf8');
    visit(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true));
  }
  return comments;
}
