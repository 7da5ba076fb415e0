import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createProcessContext, type CliContext } from '../../../src/cli/context/cli-context.js';
import { defineCancelCommand } from '../../../src/cli/commands/change-commands.js';
import { defineResolveCommand } from '../../../src/cli/commands/resolve-command.js';
import { testRedisUrl } from '../../support/account.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let typed: PassThrough;
let screen: PassThrough;

beforeEach(async () => {
  account = openAccountCli();
  for (const payoutId of ['p-1', 'p-2']) expect(await account.enqueue(payoutId)).toMatchObject({ code: 0 });
  typed = Object.assign(new PassThrough(), { isTTY: true });
  screen = Object.assign(new PassThrough(), { isTTY: true });
});

afterEach(async () => account.close());

/** Runs a command as an operator at a terminal. */
async function run(define: typeof defineCancelCommand, ...args: string[]): Promise<void> {
  const context: CliContext = {
    ...createProcessContext(),
    environment: { ...account.env, REDIS_URL: testRedisUrl() },
    terminal: { input: typed, output: screen },
    write: () => undefined,
    writeError: () => undefined,
  };
  const program = new Command().exitOverride();
  define(program.command('command'), context);
  await program.parseAsync(['command', ...args, '--reason', 'a wrong file', '--by', 'ann'], { from: 'user' });
}

const cancelAll = async (): Promise<void> => run(defineCancelCommand, '--state', 'queued');

const stateOf = async (payoutId: string): Promise<string | undefined> => (await account.ledger.get(payoutId))?.state;

it('asks before many payouts are changed, naming how many and of which account', async () => {
  typed.write('y\n');
  await cancelAll();
  const { platformId } = account.ledger.connection;
  expect(String(screen.read())).toContain(`Cancel 2 payouts of account ${platformId}, never to be sent again? [y/N]`);
  expect([await stateOf('p-1'), await stateOf('p-2')]).toEqual(['cancelled', 'cancelled']);
});

it('changes nothing after any other answer', async () => {
  typed.write('\n');
  await expect(cancelAll()).rejects.toMatchObject({ code: 'STOPPED' });
  expect([await stateOf('p-1'), await stateOf('p-2')]).toEqual(['queued', 'queued']);
});

it('asks for the number of payouts that are sent again, and takes no yes', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'bulk-'));
  const file = join(dir, 'unpaid.csv');
  await writeFile(file, 'payout_id\np-1\np-2\n');
  for (const payoutId of ['p-1', 'p-2']) await account.force(payoutId, 'unknown');
  const notSent = async (): Promise<void> => run(defineResolveCommand, '--file', file, '--not-sent');
  typed.write('y\n');
  await expect(notSent()).rejects.toMatchObject({ code: 'STOPPED' });
  const { platformId } = account.ledger.connection;
  expect(String(screen.read())).toContain(
    `Send 2 payouts of account ${platformId} again (what was paid is paid twice)? Type how many: `,
  );
  expect([await stateOf('p-1'), await stateOf('p-2')]).toEqual(['unknown', 'unknown']);
  typed.write('2\n');
  await notSent();
  expect([await stateOf('p-1'), await stateOf('p-2')]).toEqual(['queued', 'queued']);
  await rm(dir, { recursive: true });
});
