import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let dir: string;

beforeEach(async () => {
  account = openAccountCli();
  dir = await mkdtemp(join(tmpdir(), 'payouts-peers-'));
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

const THIS = 'aaaaaaaaaaaa';
const OTHER = 'bbbbbbbbbbbb';

/** One of the journal's files, with the send of this number. `suffix`: those that were set aside have one. */
async function writeFileOf(suffix: string, sends: number, ...lines: readonly JournalLine[]): Promise<void> {
  const token = (number: number): string => (number === 0 ? '' : `t-${number}`);
  const before = { sends: sends - 1, token: token(sends - 1) };
  const all: readonly JournalLine[] = [
    { v: 2, journalId: THIS },
    { ledgerId: 'former', epoch: 1, ...before },
    ...lines,
    {
      payoutId: `p-${sends}`,
      attempt: 1,
      token: token(sends),
      epoch: 1,
      sends,
      after: before,
      request: { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' },
      at: 0,
    },
  ];
  const path = join(dir, `${account.ledger.connection.platformId}.journal${suffix}`);
  await writeFile(path, all.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

describe('payouts adopt-ledger with a journal of which only the oldest file names another', () => {
  it('asks for that one, which can be given up by the id that it names', async () => {
    await writeFileOf('.1', 1, { peers: [{ journalId: OTHER, host: 'host-b', dir: '/b' }] });
    await writeFileOf('.2', 2);
    await writeFileOf('', 3);
    const command = ['adopt-ledger', '--journal', dir, '--yes', '--reason', 'flushed', '--by', 'ann'];
    const refused = await account.run(...command);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(new RegExp(`journal ${OTHER} was not read.*--give-up its id`));
    expect(await account.ledger.get('p-1')).toBeUndefined();
    expect(await account.run(...command, '--give-up', OTHER)).toMatchObject({ code: 0 });
    for (const payoutId of ['p-1', 'p-2', 'p-3']) {
      expect((await account.ledger.get(payoutId))?.state).toBe('unknown');
    }
  });

  it('refuses to give up one that nobody knows', async () => {
    await writeFileOf('', 1);
    const command = ['adopt-ledger', '--journal', dir, '--yes', '--reason', 'flushed', '--by', 'ann'];
    expect(await account.run(...command, '--give-up', OTHER)).toMatchObject({ code: 2 });
    expect(await account.ledger.get('p-1')).toBeUndefined();
  });
});
