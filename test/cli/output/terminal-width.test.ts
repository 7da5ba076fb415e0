import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { openSampleAccount, type SampleAccount } from '../../dashboard/support/sample-account.js';

const ID = '7f1c2a7e-3f0e-4d8e-9b54-0a1b2c3d4e5f';
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

let account: SampleAccount;

beforeAll(async () => {
  account = await openSampleAccount();
  await account.sendAs(ID, { kind: 'rejected', message: 'Insufficient balance: top the account up, then retry it' });
  await account.sendAs(
    'paid',
    { kind: 'accepted', txhash: `0x${'9f86d081'.repeat(8)}` },
    { amount: '1234567.123456789' },
  );
  await account.sendAs('short', { kind: 'unknown', reason: 'no complete response within 120000 ms' }, { batch: 'b' });
  await account.enqueue('held', { batch: 'b', requestedBy: 'Ann' });
  await account.sender.holdPayout('held', 0, HOLD);
  await account.ledger.pause(
    'ann',
    'the wallet at the gateway is maintained until noon, and nothing may be sent before',
  );
  await account.enqueue('wide', { reference: '支払い'.repeat(20), batch: 'b' });
});

afterAll(async () => {
  await account.close();
});

/** What `payouts` prints on a pseudo-terminal of this width, or through a pipe. */
async function show(columns: number | undefined, ...args: string[]): Promise<string> {
  const program = [process.execPath, findBuiltProgram(), ...args].join(' ');
  const { PATH = '', HOME = '', REDIS_URL = '' } = process.env;
  const env = { PATH, HOME, REDIS_URL, GATEWAY_PLATFORM_ID: String(account.connection.platformId) };
  const command = columns === undefined ? `${program} | cat` : `stty cols ${columns}; ${program}`;
  const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], { env });
  return stripVTControlCharacters(stdout).replaceAll('\r', '');
}

function widest(text: string): number {
  return Math.max(...text.split('\n').map((line) => line.length));
}

describe.each([60, 80, 120])('on a terminal of %d columns', (columns) => {
  it.each([
    ['list', '--batch', 'b'],
    ['list', '--state', 'rejected'],
    ['list', '--since', '2020-01-01'],
    ['get', 'paid'],
    ['get', ID],
    ['stats'],
    ['stats', '--batch', 'b'],
    ['activity'],
  ])('`payouts %s %s %s` has no longer line', async (...args) => {
    const shown = await show(columns, ...args.filter(Boolean));
    expect(shown.split('\n').length).toBeGreaterThan(2);
    // A command must be copied whole.
    const sentences = shown.split('\n').filter((line) => !line.startsWith('  payouts '));
    expect(sentences.filter((line) => line.length > columns)).toEqual([]);
  });

  it('leaves ids, addresses and transactions whole', async () => {
    expect(await show(columns, 'list', '--state', 'rejected')).toMatch(new RegExp(`^${ID}( |$)`, 'm'));
    const shown = await show(columns, 'get', 'paid');
    expect(shown).toContain(ADDRESS);
    if (columns >= 80) expect(shown).toContain(`0x${'9f86d081'.repeat(8)}`);
  });
});

it('cuts nothing without a terminal', async () => {
  const shown = await show(undefined, 'list', '--state', 'rejected');
  expect(shown).toContain('Insufficient balance: top the account up, then retry it');
  expect(widest(shown)).toBeGreaterThan(120);
});
