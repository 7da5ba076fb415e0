import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from '@jest/globals';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import type { CommandGroup } from '../../src/cli/context/run-program.js';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { runInProcess } from '../cli/support/in-process.js';
import { alertRules } from './support/alert-rules.js';

/** The runbooks: an index of every page, the alerts of each, and commands that the program accepts. */

const FOLDER = new URL('../../docs/runbooks/', import.meta.url);
const read = (page: string): string => readFileSync(new URL(`${page}.md`, FOLDER), 'utf8');
const index = read('README');
const pages = readdirSync(FOLDER)
  .map((file) => file.replace(/\.md$/, ''))
  .filter((page) => page !== 'README');

/** Planned work: steps to follow, no symptom. The index lists them apart. */
const PROCEDURES = ['accounts', 'backup', 'gateway-key', 'move-redis', 'restore-redis', 'upgrade'];

it.each(pages.filter((page) => !PROCEDURES.includes(page)))('the page %s names its alerts, and no other', (page) => {
  const own = alertRules.filter(({ annotations }) => annotations.runbook === `docs/runbooks/${page}.md`);
  const [, see = ''] = /^- \*\*See:\*\*(.*)$/m.exec(read(page)) ?? [];
  const named = [...see.matchAll(/`(Payouts\w+)`/g)].map(([, alert]) => alert);
  expect(named.sort()).toEqual(own.map(({ alert }) => alert).sort());
});

it('the index has every page, in the words of the headlines, and what risks money first', () => {
  expect(pages.filter((page) => !index.includes(`(${page}.md)`))).toEqual([]);
  const rows = index.split('\n');
  for (const [words, runbook] of Object.values(HEADLINES).map((row): [string, string?] => [...row]))
    if (runbook !== undefined)
      expect(rows.filter((row) => row.includes(`\`${words}\``) && row.includes(`(${runbook}.md)`))).toHaveLength(1);
  const [risky = ''] = index.split('## No money');
  for (const page of pages.filter((each) => !PROCEDURES.includes(each))) {
    const isAtRisk = /^- \*\*At risk:\*\* (yes|sending it again)/m.test(read(page));
    expect({ page, isAtRisk: risky.includes(`(${page}.md)`) }).toEqual({ page, isAtRisk });
  }
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

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const documented = [
  ['README.md', [...readme.matchAll(/^- `(payouts resolve .*?)`/gm)].map(([, command = '']) => command)] as const,
  ...['README', ...pages].map((page) => [`runbooks/${page}.md`, commandsIn(read(page))] as const),
  ...alertRules.map(
    ({ alert, annotations }) =>
      [
        alert,
        commandsIn(
          annotations.action
            .replaceAll(/\{\{ \$labels\.platform_id \}\}/g, '7')
            .replaceAll('{{ $labels.role }}', 'producer')
            .replaceAll(/\{\{.*?\}\}/g, 'notify'),
        ),
      ] as const,
  ),
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
