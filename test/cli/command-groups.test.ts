import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Command, Help } from 'commander';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import { createProcessContext } from '../../src/cli/context/cli-context.js';
import { newPlatformId } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';

const entries = COMMAND_GROUPS.flatMap(({ commands }) => commands);
const context = createProcessContext();

describe('the table of commands', () => {
  it.each(entries)('says of `payouts $usage` what the command takes', async ({ usage, load }) => {
    const command = new Command(usage.split(' ')[0]);
    (await load())(command, context);
    expect(new Help().subcommandTerm(command)).toBe(usage);
    expect(command.description()).toBe('');
  });
});

/** Prints the path of every module that was loaded. */
const PRINTING_HOOK = `
  import { writeSync } from 'node:fs';
  import { createRequire } from 'node:module';
  const { cache } = createRequire('/');
  process.on('exit', () => writeSync(2, Object.keys(cache).map((path) => 'loads ' + path + '\\n').join('')));`;

function toDataUrl(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

/** What `payouts` imports for a command: packages, and modules of its own. */
async function importsOf(...args: string[]): Promise<{ packages: Set<string>; modules: Set<string> }> {
  const { PATH = '', REDIS_URL = '' } = process.env;
  const run = promisify(execFile)(
    process.execPath,
    ['--import', toDataUrl(PRINTING_HOOK), findBuiltProgram(), ...args],
    {
      env: { PATH, REDIS_URL, GATEWAY_PLATFORM_ID: String(newPlatformId()) },
    },
  );
  // A command that does not find its payout has imported as much.
  const { stderr } = await run.catch((error: unknown) => error as { readonly stderr: string });
  const found = (pattern: RegExp): Set<string> => new Set([...stderr.matchAll(pattern)].map(([, name = '']) => name));
  return {
    packages: found(/^loads .*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/gm),
    modules: found(/^loads .*\/dist\/(.+)$/gm),
  };
}

const packagesOf = async (...args: string[]): Promise<Set<string>> => (await importsOf(...args)).packages;

describe('a start', () => {
  it.each([
    { args: ['--version'], most: 10 },
    { args: ['--help'], most: 10 },
    { args: ['cancel', 'nobody', '--reason', 'none'], most: 60 },
  ])('of `payouts $args` imports at most $most modules', async ({ args, most }) => {
    const { modules } = await importsOf(...args);
    expect(modules).toContain('cli/main.js');
    expect(modules.size).toBeLessThanOrEqual(most);
  });

  it('imports next to nothing for the help', async () => {
    expect(await packagesOf('--help')).toEqual(new Set(['commander', 'picocolors']));
  });

  it.each([['list', '--state', 'unknown'], ['stats', '--json'], ['events'], ['pause']])(
    'of `payouts %s` imports neither the queues nor what only services need',
    async (...args) => {
      const packages = await packagesOf(...args);
      expect(packages).toContain('ioredis');
      for (const heavy of ['bullmq', 'axios', 'express', 'prom-client', 'pino']) expect(packages).not.toContain(heavy);
    },
  );

  it('imports the queues for a command that adds a job', async () => {
    const payout = ['--payout-id', 'p-1', '--payment-id', '6', '--amount', '1', '--address-to', 'TXYZ9'];
    expect(await packagesOf('enqueue', ...payout)).toContain('bullmq');
  });
});
