import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createProcessContext, type CliContext } from '../../../src/cli/context/cli-context.js';
import { defineCancelCommand } from '../../../src/cli/commands/cancel-command.js';
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

/** Cancels what is queued, as an operator at a terminal. */
async function cancelAll(): Promise<void> {
  const context: CliContext = {
    ...createProcessContext(),
    environment: { ...account.env, REDIS_URL: testRedisUrl() },
    terminal: { input: typed, output: screen },
    write: () => undefined,
    writeError: () => undefined,
  };
  const program = new Command().exitOverride();
  defineCancelCommand(program.command('cancel'), context);
  const args = ['cancel', '--state', 'queued', '--reason', 'a wrong file', '--by', 'ann'];
  await program.parseAsync(args, { from: 'user' });
}

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
