import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openSampleAccount, type SampleAccount } from '../../dashboard/support/sample-account.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { runInProcess } from '../support/in-process.js';

const ID = '7f1c2a7e-3f0e-4d8e-9b54-0a1b2c3d4e5f';
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const TXHASH = `0x${'9f86d081'.repeat(8)}`;
const MESSAGE = 'Insufficient balance: top the account up, then retry it';

let account: SampleAccount;
let env: Record<string, string>;
beforeAll(async () => {
  account = await openSampleAccount();
  env = { GATEWAY_PLATFORM_ID: String(account.connection.platformId) };
  await account.sendAs(ID, { kind: 'rejected', message: MESSAGE });
  await account.sendAs('paid', { kind: 'accepted', txhash: TXHASH }, { amount: '1234567.123456789' });
  await account.sendAs('short', { kind: 'unknown', reason: 'no complete response within 120000 ms' }, { batch: 'b' });
  await account.enqueue('held', { batch: 'b', requestedBy: 'Ann' });
  await account.sender.holdPayout('held', 0, HOLD);
  await account.ledger.pause('ann', 'maintained until noon, '.repeat(6).trim());
  await account.enqueue('wide', { reference: '支払い'.repeat(20), batch: 'b' });
});
afterAll(async () => account.close());

/** What `payouts` prints on a terminal of this width. */
async function show(columns: number, command: string): Promise<string> {
  const { stdout } = process;
  const before = { isTTY: stdout.isTTY, columns: stdout.columns };
  Object.assign(stdout, { isTTY: true, columns });
  try {
    return stripVTControlCharacters((await runInProcess(command.split(' '), env)).stdout);
  } finally {
    Object.assign(stdout, before);
  }
}

describe.each([60, 120])('on a terminal of %d columns', (columns) => {
  it.each([
    ...['list --batch b', 'list --state rejected', 'list --since 2020-01-01', 'get paid', `get ${ID}`, 'stats'],
    ...['stats --batch b', 'activity'],
  ])('`payouts %s` has no longer line', async (command) => {
    const lines = (await show(columns, command)).split('\n');
    expect(lines.length).toBeGreaterThan(2);
    // A command must be copied whole.
    expect(lines.filter((line) => line.length > columns && !line.startsWith('  payouts '))).toEqual([]);
  });

  it('leaves ids, addresses and transactions whole', async () => {
    expect(await show(columns, 'list --state rejected')).toMatch(new RegExp(`^${ID}( |$)`, 'm'));
    const shown = await show(columns, 'get paid');
    expect(shown).toContain(ADDRESS);
    if (columns >= 80) expect(shown).toContain(TXHASH);
  });
});

it('cuts nothing without a terminal', async () => {
  const piped = (await runInProcess(['list', '--state', 'rejected'], env)).stdout;
  expect(piped).toContain(MESSAGE);
  expect(Math.max(...piped.split('\n').map((line) => line.length))).toBeGreaterThan(120);
});
