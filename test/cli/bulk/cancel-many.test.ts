import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let dir: string;

beforeEach(async () => {
  account = openAccountCli();
  dir = await mkdtemp(join(tmpdir(), 'cancel-'));
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

const WHY = ['--reason', 'wrong file', '--by', 'ann'];

async function write(name: string, lines: readonly string[]): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, lines.join('\n'));
  return path;
}

/** Accepts p-1 … p-n in the batch May, some with a priority or a time. */
async function importMay(count: number): Promise<string> {
  const rows = Array.from({ length: count }, (_, index) => {
    const more = index === 1 ? { priority: 3 } : index === 2 ? { notBefore: '2099-01-01T00:00:00Z' } : {};
    return JSON.stringify({ payoutId: `p-${index + 1}`, paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', ...more });
  });
  const file = await write('may.jsonl', rows);
  expect(await account.run('import', file, '--batch', 'May', '--yes')).toMatchObject({ code: 0 });
  return file;
}

const stateOf = async (payoutId: string): Promise<string | undefined> => (await account.ledger.get(payoutId))?.state;

async function readJobs(): Promise<string[]> {
  const { redis, keys } = account.ledger.connection;
  const key = (name: string): string => `${keys.prefix}:withdraw:${name}`;
  const found = [
    await redis.lrange(key('wait'), 0, -1),
    await redis.zrange(key('delayed'), 0, '-1'),
    await redis.zrange(key('prioritized'), 0, '-1'),
  ];
  return found.flat();
}

describe('payouts cancel of many', () => {
  it('--batch counts, adds up, and changes nothing in a dry run', async () => {
    await importMay(4);
    const result = await account.run('cancel', '--batch', 'May', '--dry-run', ...WHY);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(
      /^4 payouts queued, held or rejected\n.*\n +6 +4 +50\nDry run: nothing was changed\.\n$/s,
    );
    expect(await stateOf('p-1')).toBe('queued');
    expect(await readJobs()).toHaveLength(4);
  });

  it('--batch cancels what is not sent, leaves the rest, and removes every job, whatever it waits for', async () => {
    await importMay(8);
    await account.enqueue('other');
    await account.force('p-4', 'rejected');
    await account.force('p-5', 'in_progress');
    const result = await account.runProcess('cancel', '--batch', 'May', '--yes', ...WHY);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(/^7 payouts queued, held or rejected, 1 in_progress left as they are\n/);
    expect(result.stdout).toMatch(/7 payouts cancelled\.\n$/);
    expect(await Promise.all(['p-1', 'p-2', 'p-3', 'p-4', 'p-5', 'other'].map(stateOf))).toEqual([
      ...['cancelled', 'cancelled', 'cancelled', 'cancelled'],
      ...['in_progress', 'queued'],
    ]);
    expect((await readJobs()).sort()).toEqual(['other~0', 'p-5~0']);
    expect((await account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: 'ann', reason: 'wrong file' });
    const { redis, keys } = account.ledger.connection;
    expect(await redis.exists(`${keys.prefix}:withdraw:p-1~0`, `${keys.prefix}:withdraw:p-2~0`)).toBe(0);
  });

  it('can be repeated, and removes jobs that an interrupted command left', async () => {
    await importMay(3);
    await account.run('cancel', 'p-1', ...WHY);
    const { redis, keys } = account.ledger.connection;
    await redis.lpush(`${keys.prefix}:withdraw:wait`, 'p-1~0');
    for (const payouts of [2, 0]) {
      const again = await account.run('cancel', '--batch', 'May', '--yes', '--json', ...WHY);
      expect(again.code).toBe(0);
      expect(JSON.parse(again.stdout)).toMatchObject({ payouts, changed: payouts, refused: 0 });
    }
    expect(await readJobs()).toEqual([]);
  });

  it('is one act in the activity', async () => {
    await importMay(130);
    await account.run('cancel', '--state', 'queued', '--yes', ...WHY);
    const { activities } = await readActivity(account.ledger.connection, 9);
    expect(activities).toEqual([
      { what: 'cancelled', count: 130, by: 'ann', reason: 'wrong file', payoutId: undefined, at: expect.any(String) },
    ]);
    const shown = await account.run('activity');
    expect(shown.stdout).toMatch(/ann +130 payouts cancelled +wrong file\n$/);
  });

  it('--file takes what the file names, and nothing where one is not there', async () => {
    await importMay(3);
    const file = await write('some.csv', ['payoutId,reference', 'p-1,x', 'p-3,y']);
    const missing = await write('missing.csv', ['payout_id', 'p-1', 'p-9']);
    const refused = await account.run('cancel', '--file', missing, '--yes', ...WHY);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/line 3: payout p-9 not found/) });
    expect(await stateOf('p-1')).toBe('queued');
    expect(await account.run('cancel', '--file', file, '--yes', ...WHY)).toMatchObject({ code: 0 });
    expect(await Promise.all(['p-1', 'p-2', 'p-3'].map(stateOf))).toEqual(['cancelled', 'queued', 'cancelled']);
  });

  it('leaves a payout that begins to be sent meanwhile, and names it', async () => {
    await importMay(120);
    const { redis, keys } = account.ledger.connection;
    // It is sent after it was counted: its index has it still.
    await redis.hset(keys.payout('p-77'), 'attempt', 1);
    await redis.hset(keys.payout('p-78'), 'state', 'sending');
    const result = await account.run('cancel', '--state', 'queued', '--yes', '--json', ...WHY);
    expect(JSON.parse(result.stdout)).toMatchObject({ changed: 119 });
    expect(await stateOf('p-78')).toBe('sending');
  });

  it('wants --yes where nobody can be asked, a choice, and a reason', async () => {
    await importMay(1);
    const unasked = await account.run('cancel', '--batch', 'May', ...WHY);
    expect(unasked).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--yes: is required/) });
    for (const [args, message] of [
      [['--yes', ...WHY], /give a payoutId, --batch, --state, --message or --file/],
      [['p-1', '--batch', 'May', ...WHY], /are for many payouts: leave the payoutId out/],
      [['--batch', 'May', '--file', 'x', '--yes', ...WHY], /--file or --batch, not both/],
      [['--batch', 'May', '--yes'], /many payouts need a --reason/],
      [['--state', 'completed', '--yes', ...WHY], /Allowed choices are queued, held, rejected/],
      [['--message', ' ', '--yes', ...WHY], /--message: must not be empty/],
    ] as const) {
      const refused = await account.run('cancel', ...args);
      expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
    }
    const unknown = await account.run('cancel', '--batch', 'June', '--yes', ...WHY);
    expect(unknown).toMatchObject({ code: 3, stderr: 'payouts: Batch June not found\n' });
    expect(await stateOf('p-1')).toBe('queued');
  });
});
