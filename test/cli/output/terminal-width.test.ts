import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { expect, it } from '@jest/globals';
import { openSampleAccount } from '../../dashboard/support/sample-account.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { runInProcess } from '../support/in-process.js';

const ID = '7f1c2a7e-3f0e-4d8e-9b54-0a1b2c3d4e5f';
const MESSAGE = 'Insufficient balance: top the account up, then retry it, and not before that is done';

it('takes the width of the terminal, leaves ids and addresses whole, and cuts nothing without one', async () => {
  const account = await openSampleAccount();
  const env = { GATEWAY_PLATFORM_ID: String(account.connection.platformId) };
  await account.sendAs(ID, { kind: 'rejected', message: MESSAGE });
  await account.sendAs(
    'paid',
    { kind: 'accepted', txhash: `0x${'9f86d081'.repeat(8)}` },
    { amount: '1234567.1234567' },
  );
  await account.enqueue('held', { batch: 'b', requestedBy: 'Ann' });
  await account.sender.holdPayout('held', 0, HOLD);
  await account.ledger.pause('ann', MESSAGE);
  await account.enqueue('wide', { reference: '支払い'.repeat(20), batch: 'b' });
  const { PATH = '', HOME = '', REDIS_URL = '' } = process.env;
  /** What `payouts` prints on a terminal of 60 columns. */
  async function show(args: string): Promise<string> {
    const command = `stty cols 60; ${process.execPath} ${findBuiltProgram()} ${args}`;
    const options = { env: { PATH, HOME, REDIS_URL, ...env } };
    const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], options);
    return stripVTControlCharacters(stdout).replaceAll('\r', '');
  }
  for (const args of ['list --batch b', 'list --state rejected', 'get paid', 'stats', 'stats --batch b', 'activity']) {
    // A command must be copied whole.
    const long = (await show(args)).split('\n').filter((line) => line.length > 60 && !line.startsWith('  payouts '));
    expect({ args, long }).toEqual({ args, long: [] });
  }
  expect(await show('list --state rejected')).toMatch(new RegExp(`^${ID}( |$)`, 'm'));
  expect(await show('get paid')).toContain('TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');
  expect((await runInProcess(['list', '--state', 'rejected'], env)).stdout).toContain(MESSAGE);
  await account.close();
});
