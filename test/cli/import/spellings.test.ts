import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let other: AccountCli;
let dir: string;

beforeEach(async () => {
  account = openAccountCli();
  other = openAccountCli();
  dir = await mkdtemp(join(tmpdir(), 'spellings-'));
});

afterEach(async () => {
  await account.close();
  await other.close();
  await rm(dir, { recursive: true });
});

async function write(name: string, ...lines: string[]): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

describe('payouts import', () => {
  it("takes the API's and the library's spelling of every column alike", async () => {
    const snake = await write(
      'snake.csv',
      'payout_id,payment_id,amount,address_to,destination_tag,not_before',
      'p-1,6,1,TXYZ9,77,2030-01-31T09:00:00Z',
    );
    const camel = await write(
      'camel.csv',
      'payoutId,paymentId,amount,addressTo,destinationTag,notBefore',
      'p-1,6,1,TXYZ9,77,2030-01-31T09:00:00Z',
    );
    const lines = await write(
      'rows.jsonl',
      '{"payout_id":"p-1","payment_id":6,"amount":"1","address_to":"TXYZ9:77","not_before":"2030-01-31T09:00:00Z"}',
    );
    expect(JSON.parse((await account.run('import', snake, '--yes', '--json')).stdout)).toMatchObject({ created: 1 });
    for (const file of [camel, lines]) {
      const again = await account.run('import', file, '--yes', '--json');
      expect(JSON.parse(again.stdout)).toMatchObject({ created: 0, existing: 1, conflicts: 0 });
    }
  });

  it('refuses both spellings in one file', async () => {
    const csv = await write('both.csv', 'payout_id,payoutId,payment_id,amount,address_to', 'p-1,p-2,6,1,T');
    const refused = await account.run('import', csv, '--yes');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/line 1: payoutId: is the same column as payout_id/);
    const lines = await write(
      'both.jsonl',
      '{"payoutId":"a","payout_id":"b","paymentId":6,"amount":"1","addressTo":"T"}',
    );
    expect((await account.run('import', lines, '--yes')).stderr).toMatch(/payout_id: is the same field as payoutId/);
  });
});

describe('payouts list --csv', () => {
  const TEXTS = ['=1+1', '+41 79', '-5', '@home', "'=quoted", "''", 'plain', "it's"];

  async function enqueueTexts(): Promise<void> {
    for (const [index, reference] of TEXTS.entries()) {
      await account.enqueue(
        `${index === 1 ? '=' : index === 2 ? '-' : ''}p-${index}`,
        '--reference',
        reference,
        '--batch',
        'b',
      );
    }
  }

  it('writes nothing that a spreadsheet would run, and imports as what it was', async () => {
    await enqueueTexts();
    const { stdout } = await account.run('list', '--batch', 'b', '--csv');
    const cells = stdout.split('\n').flatMap((line) => line.split(','));
    expect(cells.filter((cell) => /^"?[=+\-@\t\r]/.test(cell))).toEqual([]);
    expect(stdout).toContain(",'=1+1,");
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(',').slice(0, 10).join(','));
    const file = await write('copy.csv', ...rows);
    expect(await other.run('import', file, '--batch', 'b', '--yes')).toMatchObject({ code: 0 });
    const again = await account.run('import', file, '--batch', 'b', '--yes', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ existing: TEXTS.length, conflicts: 0 });
    const list = async (from: AccountCli): Promise<unknown> =>
      (await from.run('list', '--batch', 'b', '--json')).stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .map(({ payoutId, reference, amount, addressTo }) => ({ payoutId, reference, amount, addressTo }));
    expect(await list(other)).toEqual(await list(account));
  });

  it('leaves texts as they are with --no-quote-formulas', async () => {
    await enqueueTexts();
    const { stdout } = await account.run('list', '--batch', 'b', '--csv', '--no-quote-formulas');
    expect(stdout).toContain(',=1+1,');
    expect(stdout).toContain('\n-p-2,');
  });

  it('has message, fee and times', async () => {
    await account.enqueue('p', '--batch', 'b');
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.payout('p'), { fee: '0.1', message: '=cmd', lateTxhash: 'late' });
    const { stdout } = await account.run('list', '--batch', 'b', '--csv');
    const [head = '', row = ''] = stdout.split('\n');
    const value = (column: string): string | undefined => row.split(',')[head.split(',').indexOf(column)];
    expect([value('fee'), value('message'), value('late_txhash'), value('batch')]).toEqual([
      '0.1',
      "'=cmd",
      'late',
      'b',
    ]);
    expect(value('created_at')).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(value('updated_at')).toBe(value('created_at'));
  });
});
