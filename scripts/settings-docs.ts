import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { z } from 'zod';
import { LONGEST_TIMER_MS } from '../src/base/clock.js';
import { SETTING_SECTIONS, type Setting, type SettingTable } from '../src/base/setting.js';
import { ACCOUNT_SETTINGS, COMMAND_SETTINGS, SETTINGS } from '../src/base/settings.js';
import { markdownTable } from './markdown-table.js';

/** docs/configuration.md and .env.example, made from the rows in src/base/ and the comments above them. */

const ROWS: readonly (readonly [name: string, row: Setting])[] = Object.entries(SETTINGS);

export function renderSettingsDoc(): string {
  const comments = readComments();
  const sections = Object.entries(SETTING_SECTIONS).map(([section, title]) => {
    const rows = ROWS.filter(([, row]) => row.section === section);
    return `## ${title}\n\n${renderTable(rows, comments)}`;
  });
  return `<!-- Made by \`npm run docs\` from src/base/settings.ts: change the rows there. -->

# Configuration

The \`payouts\` command takes every setting from the environment. Every problem is reported at once, with the variable, the
rule and the value (never a secret). An empty variable counts as not set. Of a secret, \`…_FILE\` names a file that holds
the value; such variables are marked with an asterisk. \`payouts doctor\` checks the settings of a worker. It and the worker warn of
a variable that is probably misspelt.

A program passes the same settings as options: \`AccountOptions\` and \`PayoutWorkerOptions\` have the names of the column
"option", the same rules and the same defaults (\`journalDir\` has none there). An unknown option is refused, and a wrong one. Keys have options of their own, named in their rows.

${sections.join('\n\n')}

## Several accounts

\`PAYOUT_ACCOUNTS_FILE\` names a JSON file. Each account has its own sender, queues, journal and pause, so trouble with one
does not slow another. What an account does not set comes from the environment.

\`\`\`json
[
  { "platformId": 4242, "baseUrl": "https://gateway.example", "secretKeyFile": "./4242.key" },
  { "platformId": 4243, "baseUrl": "https://gateway.example", "secretKeyFile": "./4243.key", "intervalMs": 1500 }
]
\`\`\`

Commands for operators work on one account: the only one of the file, that of \`GATEWAY_PLATFORM_ID\`, or that of \`--account ID\`.
\`payouts worker\`, \`dashboard\`, \`notify\` and \`doctor\` serve all of the file, or with \`--account ID\` that one. Workers with the same file share its accounts out
([deploy.md](deploy.md#several-processes)).

\`secretKeyFile\` is relative to the accounts file. So is \`signingKeyFile\`, which an account has together with \`signingKeyName\`, in
place of \`PAYOUT_SIGNING_KEY_FILE\` and \`PAYOUT_SIGNING_KEY_NAME\`, and so is \`policyFile\`: a policy names its account, so each
account has one of its own. An account may set each of these:

${Object.keys(ACCOUNT_SETTINGS)
  .map((name) => `- \`${name}\``)
  .join('\n')}
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

function renderTable(rows: typeof ROWS, comments: ReadonlyMap<string, string>): string {
  const commandOnly: SettingTable = COMMAND_SETTINGS;
  return markdownTable(
    ['variable', 'option', 'default', 'allowed', 'what it does'],
    rows.map(([name, row]) => [
      `\`${row.variable}\`${row.secret ? ' \\*' : ''}`,
      name in commandOnly ? '' : `\`${name}\``,
      describeDefault(row),
      describeRule(row.rule),
      comments.get(name) ?? '',
    ]),
  );
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
