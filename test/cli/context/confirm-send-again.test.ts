import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createProcessContext, type CliContext } from '../../../src/cli/context/cli-context.js';
import { defineResolveCommand } from '../../../src/cli/commands/resolve-command.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { testRedisUrl } from '../../support/account.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let shown: string;
let typed: PassThrough;
let screen: PassThrough;

beforeEach(async () => {
  account = openAccountCli();
  await account.enqueue('p-1');
  await account.force('p-1', 'unknown');
  shown = '';
  typed = Object.assign(new PassThrough(), { isTTY: true });
  screen = Object.assign(new PassThrough(), { isTTY: true });
});

afterEach(async () => account.close());

/** The command as an operator at a terminal runs it. */
async function run(...args: string[]): Promise<void> {
  const context: CliContext = {
    ...createProcessContext(),
    environment: { ...account.env, REDIS_URL: testRedisUrl() },
    terminal: { input: typed, output: screen },
    write: (text) => (shown += text),
    writeError: (text) => (shown += text),
  };
  const program = new Command().exitOverride();
  defineResolveCommand(program.command('resolve'), context);
  await program.parseAsync(['resolve', ...args, '--reason', 'ticket 812', '--by', 'ann'], { from: 'user' });
}

async function untilAsked(): Promise<void> {
  for (let text = ''; !/\[y\/N\]|how many:/.test(text);) {
    text += String(screen.read() ?? '');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const state = async (): Promise<string | undefined> => (await account.ledger.get('p-1'))?.state;

describe('payouts resolve --not-sent at a terminal', () => {
  it('shows amount, address and time, and sends again after a yes', async () => {
    typed.write('y\n');
    await run('p-1', '--not-sent');
    expect(shown).toMatch(/amount +12\.5 \(payment_id 6\)\n/);
    expect(shown).toMatch(/address +TXYZ9\n/);
    expect(shown).toMatch(/unknown since +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n/);
    expect(await state()).toBe('queued');
  });

  it('shows with whose key the decision is signed, and signs nothing without a yes', async () => {
    const keys = await openTestKeys();
    try {
      const { file } = await keys.makeKey('ann');
      typed.write('\n');
      await expect(run('p-1', '--not-sent', '--key', file, '--key-name', 'ann-laptop')).rejects.toMatchObject({
        code: 'STOPPED',
      });
      expect(shown).toMatch(/signed with +key ann-laptop\n/);
      expect(await account.ledger.get('p-1')).toMatchObject({ state: 'unknown' });
    } finally {
      await keys.close();
    }
  });

  it('leaves the payout as it is after anything else', async () => {
    typed.write('\n');
    await expect(run('p-1', '--not-sent')).rejects.toMatchObject({ code: 'STOPPED' });
    expect(await state()).toBe('unknown');
  });

  it('does not ask with --yes, nor where nothing is sent', async () => {
    await run('p-1', '--not-sent', '--yes');
    expect(await state()).toBe('queued');
    await account.enqueue('p-2');
    await account.force('p-2', 'unknown');
    await run('p-2', '--write-off');
    expect((await account.ledger.get('p-2'))?.state).toBe('cancelled');
  });

  it('refuses where the payout was sent again while the question stood', async () => {
    const failed = run('p-1', '--not-sent');
    const refused = expect(failed).rejects.toThrow(/was sent again meanwhile \(attempt 1\)/);
    await untilAsked();
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.payout('p-1'), 'attempt', 1);
    typed.write('y\n');
    await refused;
    expect(await state()).toBe('unknown');
  });

  it('refuses the same for many', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'again-'));
    const file = join(dir, 'unpaid.csv');
    await writeFile(file, 'payout_id\np-1\n');
    const failed = run('--file', file, '--not-sent');
    const refused = expect(failed).rejects.toMatchObject({ code: 'CONFLICT' });
    await untilAsked();
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.payout('p-1'), 'attempt', 1);
    typed.write('1\n');
    await refused;
    expect(shown).toMatch(/was sent again meanwhile/);
    expect(await state()).toBe('unknown');
    await rm(dir, { recursive: true });
  });
});
