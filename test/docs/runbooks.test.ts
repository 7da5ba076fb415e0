import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from '@jest/globals';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import type { CommandGroup } from '../../src/cli/context/run-program.js';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { runInProcess } from '../cli/support/in-process.js';
import { alertRules } from './support/alert-rules.js';

/** The runbooks: the form of each page, an index that answers each drill, and commands that the program accepts. */

const FOLDER = new URL('../../docs/runbooks/', import.meta.url);
const read = (page: string): string => readFileSync(new URL(`${page}.md`, FOLDER), 'utf8');
const index = read('README');
const pages = readdirSync(FOLDER)
  .map((file) => file.replace(/\.md$/, ''))
  .filter((page) => page !== 'README');

/** Planned work: steps to follow, no symptom. The index lists them apart. */
const PROCEDURES = ['accounts', 'backup', 'gateway-key', 'move-redis', 'restore-redis', 'upgrade'];
const PARTS = ['See', 'At risk', 'Do', 'Do not', 'Afterwards'];

/** A page fits on a screen beside a terminal. */
const LINES = 15;
const LINE_LENGTH = 120;

function countLines(page: string): number {
  const text = read(page).replace(/^```.*?^```$/gms, '');
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .reduce((sum, line) => sum + Math.ceil(line.length / LINE_LENGTH), 0);
}

describe.each(pages.filter((page) => !PROCEDURES.includes(page)))('the page %s', (page) => {
  it('has the five parts in their order, on at most 15 lines beside its commands', () => {
    const parts = [...read(page).matchAll(/^- \*\*([^:*]+):\*\*/gm)].map(([, part]) => part);
    expect(parts).toEqual(PARTS);
    expect(countLines(page)).toBeLessThanOrEqual(LINES);
  });

  it('names its alerts, and no other', () => {
    const own = alertRules.filter(({ annotations }) => annotations.runbook === `docs/runbooks/${page}.md`);
    const [, see = ''] = /^- \*\*See:\*\*(.*)$/m.exec(read(page)) ?? [];
    const named = [...see.matchAll(/`(Payouts\w+)`/g)].map(([, alert]) => alert);
    expect(named.sort()).toEqual(own.map(({ alert }) => alert).sort());
  });
});

/** Lines of the index: what is seen, the first command, the page; those with money at risk first. */
const rows = index.split('\n').flatMap((line) => {
  const [, see = '', command = '', page] = /^- (.*): (\*\*`.+`\*\*.*); \[.+\]\((.+)\.md\)$/.exec(line) ?? [];
  return line.startsWith('- ') ? [{ see, command, page }] : [];
});

it('is found in an index of one screen, what risks money first', () => {
  expect(rows.length).toBeLessThanOrEqual(32);
  const headings = [...index.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(['Money at risk', 'No money at risk', 'Planned work']);
  expect(rows.filter(({ page }) => page === undefined)).toEqual([]);
  expect([...new Set(rows.map(({ page }) => page))].sort()).toEqual(
    pages.filter((page) => !PROCEDURES.includes(page)).sort(),
  );
});

it.each(pages.filter((page) => !PROCEDURES.includes(page)))('lists %s by whether money is at risk', (page) => {
  const isAtRisk = /^- \*\*At risk:\*\* (yes|sending it again)/m.test(read(page));
  const [risky = ''] = index.split('## No money');
  expect({ page, isAtRisk: risky.includes(`(${page}.md)`) }).toEqual({ page, isAtRisk });
});

/** The drills of an operator on duty: what the page, doctor or a colleague says, and what the index answers. */
const DRILLS: readonly (readonly [drill: string, says: string, page: string, command: string])[] = [
  ['the gateway refuses connections', HEADLINES.gatewayDown[0], 'gateway', 'payouts gateway balance'],
  ['it answers 502', HEADLINES.noResponse[0], 'gateway', 'payouts list --state unknown'],
  ['it blocked the account', 'looks like a block', 'paused', 'payouts stats'],
  ['the signature is wrong', 'wrong signature', 'paused', 'payouts stats'],
  ['it is slow', HEADLINES.gatewaySlow[0], 'gateway', 'payouts gateway balance'],
  ['the worker got SIGKILL', HEADLINES.silent[0], 'worker-missing', 'systemctl start payouts-worker'],
  ['Redis was killed', HEADLINES.redisDown[0], 'redis-down', 'payouts doctor'],
  ['Redis was rolled back', HEADLINES.mismatch[0], 'ledger-mismatch', 'payouts stats'],
  ['the disk is full', HEADLINES.disk[0], 'disk', 'df -h'],
  ['five payouts are unknown', 'may or may not have been sent', 'unknown', 'payouts list --state unknown'],
  ['a wrong batch', 'wrong batch', 'wrong-batch', 'payouts cancel --batch NAME --dry-run'],
  ['a cap is reached', 'a cap is reached', 'policy', 'payouts policy usage'],
  ['the balance is gone', 'more than the payouts explain', 'balance-fell', 'payouts pause'],
  ['a second host with its own journal', 'a second host with a journal of its own', 'journal', 'payouts doctor'],
  ['a host is lost', 'a whole host is gone', 'host-lost', 'systemctl start payouts-worker'],
];

it.each(DRILLS)('says in one row what to do first: %s', (_, says, page, command) => {
  const found = rows.filter(({ see }) => see.includes(says));
  expect(found.map((row) => row.page)).toEqual([page]);
  expect(found[0]?.command).toContain(command);
});

/** The words of a command up to what a shell does with its output. */
function wordsOf(command: string): string[] {
  const [own = ''] = /^(?:[^"'|>;)&]|"[^"]*"|'[^']*')*/.exec(command) ?? [];
  return [...own.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

/** The same commands, which do nothing once their arguments are read. */
function parseOnly(onParsed: () => void): CommandGroup[] {
  const silence = (command: Command): void => {
    command.action(onParsed);
    command.commands.forEach(silence);
  };
  return COMMAND_GROUPS.map((group) => ({
    ...group,
    commands: group.commands.map((entry) => ({
      ...entry,
      load: async () => {
        const define = await entry.load();
        return (command, context) => {
          define(command, context);
          const under = command.commands;
          if (under.length === 0) command.action(onParsed);
          else under.forEach(silence);
        };
      },
    })),
  }));
}

function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh)?\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.split('\n'));
  const inline = [...text.replace(/^```.*?^```$/gms, '').matchAll(/`(payouts [^`]+)`/g)].map(
    ([, command = '']) => command,
  );
  const lines = blocks.flatMap((line) => /(?:^ *|until |worker )(payouts .*)$/.exec(line)?.[1] ?? []);
  return [...lines, ...inline];
}

const documented = [
  ...['README', ...pages].map((page): [string, string[]] => [`${page}.md`, commandsIn(read(page))]),
  ...alertRules.map(({ alert, annotations }): [string, string[]] => [
    alert,
    commandsIn(
      annotations.action
        .replaceAll(/\{\{ \$labels\.platform_id \}\}/g, '7')
        .replaceAll('{{ $labels.role }}', 'producer')
        .replaceAll(/\{\{.*?\}\}/g, 'notify'),
    ),
  ]),
].filter(([, commands]) => commands.length > 0);

it.each(documented)('%s names commands that the program accepts', async (_, commands) => {
  for (const command of commands) {
    const [, ...args] = wordsOf(command);
    const account = args[args.indexOf('--account') + 1] ?? '7';
    const env = { GATEWAY_PLATFORM_ID: /^\d+$/.test(account) ? account : '7' };
    let parsed = args.includes('--version');
    const groups = parseOnly(() => (parsed = true));
    const { code, stderr } = await runInProcess(args, env, groups);
    expect({ command, code, stderr, parsed }).toEqual({ command, code: 0, stderr: '', parsed: true });
  }
});
