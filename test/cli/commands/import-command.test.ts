import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { removePayouts } from '../../../src/ledger/remove-payouts.js';
import { runCli, startCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';
import { runInProcess } from '../support/in-process.js';

let dir: string;
let account: AccountCli;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true });
});

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => account.close());

const HEADER = 'payout_id,payment_id,amount,address_to';

async function save(name: string, ...lines: string[]): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, `${lines.join('\n')}\n`);
  return file;
}

/** Runs `payouts import` with a Redis that is unavailable. */
async function importOffline(file: string, ...args: string[]): Promise<CliResult> {
  return runInProcess(['import', file, ...args], { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: '7' });
}

describe('payouts import', () => {
  it('names currencies, and warns of an id that the gateway does not list, without refusing it', async () => {
    const { connection } = account.ledger;
    const currencies = JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }] });
    await connection.redis.hset(connection.keys.gateway, 'currencies', currencies);
    const rows = ['known,6,77,TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', 'odd,99,5,TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'];
    const file = await save('names.csv', HEADER, ...rows);
    const { code, stdout } = await account.run('import', file, '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toMatch(/ 6 +1 +77 USDT \(TRC-20\)\n +99 +1 +5\n/);
    expect(stdout).toContain('Warning: the gateway does not list payment_id 99; see `payouts gateway currencies`');
  });

  it('enqueues every column of a CSV file into a batch, with exact totals for each currency', async () => {
    const file = await save(
      'all.csv',
      '\uFEFFmetadata, payout_id ,payment_id,amount,address_to,destination_tag,symbol,reference,priority,not_before',
      '"{""order"":7}",p-1,4,0.100000000000000001,rX,4711,USD,"Müller, ""rent""",3,2030-01-31T09:00:00Z',
      '',
      ',p-2,4,0.2,rY:1,,USD,,,',
      ',p-3,6,1000000000000000000000.5,TX,,,,,',
    );
    const result = await account.runProcess('import', file, '--yes', '--batch', 'b-1');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(/^3 rows: 3 payouts\n/);
    expect(result.stdout).toMatch(/\n +4 +USD +2 +0\.300000000000000001\n +6 +1 +1,000,000,000,000,000,000,000\.5\n/);
    expect(result.stdout).toMatch(/one every 1010 ms, sending them takes at least 3 s\.\n3 payouts enqueued\.\n$/);
    expect(await account.ledger.get('p-1')).toMatchObject({
      state: 'queued',
      paymentId: 4,
      amount: '0.100000000000000001',
      addressTo: 'rX:4711',
      symbol: 'USD',
      reference: 'Müller, "rent"',
      priority: 3,
      notBefore: '2030-01-31T09:00:00.000Z',
      metadata: { order: 7 },
      batch: 'b-1',
    });
    const { redis, keys } = account.ledger.connection;
    expect(await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1)).toEqual(['p-3~0', 'p-2~0']);
    expect(await redis.zcard(keys.outbox)).toBe(0);
  });

  it('reads JSON lines, also from stdin, and reports the result as JSON', async () => {
    const lines = [
      '\uFEFF{"payoutId":"p-1","paymentId":6,"amount":"12.50","addressTo":"TX","metadata":[1]}',
      '{"payoutId":"p-1","paymentId":6,"amount":"12.5","addressTo":"TX","metadata":[1]}\r',
      ' ',
      '{"payoutId":"p-2","paymentId":6,"amount":"1","addressTo":"TY"}',
    ];
    const args = ['import', '-', '--yes', '--json'];
    const { code, stdout, stderr } = await runCli(args, { env: account.env, input: lines.join('\n') });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      file: 'stdin',
      rows: 3,
      payouts: 2,
      repeated: 1,
      invalid: 0,
      totals: [{ paymentId: 6, payouts: 2, amount: '13.5' }],
      estimatedMs: 2_020,
      dryRun: false,
      created: 2,
      existing: 0,
      otherBatch: 0,
      conflicts: 0,
      removed: 0,
    });
    const again = await account.run('import', await save('again.jsonl', ...lines), '--yes');
    expect(again.stdout).toMatch(/, 1 repeated/);
    expect(again.stdout).toMatch(/0 payouts enqueued, 2 already existed\.\n$/);
  });

  it('names every error with its line and column, and enqueues nothing', async () => {
    const file = await save(
      'wrong.csv',
      `${HEADER},destination_tag,metadata`,
      'p-1,6,12.5,TX,,',
      'p 2,x,1e3,,,',
      'p-3,6,1',
      'p-4,6,1,TX:1,2,',
      'p-5,6,1,TX,,{',
      'p-1,6,12.6,TX,,',
    );
    const { code, stdout, stderr } = await account.run('import', file, '--yes');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const problems = [
      /^line 3: payout_id: must be 1 to 64 .*\(got "p 2"\)$/m,
      /^line 3: payment_id: must be a whole number.*\(got "x"\)$/m,
      /^line 3: amount: must be a decimal string.*\(got "1e3"\)$/m,
      /^line 3: address_to: is missing$/m,
      /^line 4: row: has 3 values, but the first line names 6 columns$/m,
      /^line 5: destination_tag: is given twice/m,
      /^line 6: metadata: is not JSON/m,
      /^line 7: payout_id: already used in line 2 with a different amount \(got "p-1"\)$/m,
      /wrong\.csv: 5 of 6 rows have errors, nothing was enqueued; fix them, or skip them with --skip-invalid$/m,
    ];
    for (const problem of problems) expect(stderr).toMatch(problem);
    expect(stderr.trim().split('\n')).toHaveLength(problems.length);
    expect(await account.ledger.get('p-1')).toBeUndefined();

    const skipped = await account.run('import', file, '--yes', '--skip-invalid');
    expect(skipped).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 payout, 5 with errors, skipped/),
    });
    expect(await account.ledger.get('p-1')).toMatchObject({ amount: '12.5' });
  });

  it('does not change payouts that exist with different data, names line and fields, and exits 4', async () => {
    await account.enqueue('p-1');
    const file = await save('conflict.csv', HEADER, 'p-0,6,1,T', 'p-1,7,12.6,TXYZ9', 'p-2,6,1,T');
    const result = await account.run('import', file, '--yes');
    expect(result.code).toBe(4);
    expect(result.stderr).toMatch(
      /^line 3: payout p-1 already exists \(queued\) with a different payment_id, amount$/m,
    );
    expect(result.stdout).toMatch(/2 payouts enqueued, 1 with different data\.\n$/);
    expect(await account.ledger.get('p-1')).toMatchObject({ paymentId: 6, amount: '12.5' });
  });

  it('needs no Redis for a dry run, and asks before it enqueues', async () => {
    const file = await save('dry', HEADER, 'p-1,6,1,T');
    expect(await importOffline(file, '--dry-run')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 row: 1 payout\n.*Dry run: nothing was enqueued\.\n$/s),
    });
    const asked = await importOffline(file);
    expect(asked).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--yes: is required/) });
  });

  it('enqueues nothing when Redis is unavailable, and keeps one batch a file', async () => {
    const file = await save('unavailable.csv', HEADER, 'p-1,6,1,T');
    const env = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: '7' };
    const failed = await runCli(['import', file, '--yes'], { env });
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/payouts: Redis unavailable .* asking again is safe/);
    const row = '{"payoutId":"p-1","paymentId":6,"amount":"1","addressTo":"T","batch":"b-1"}';
    const other = await importOffline(await save('batch.jsonl', row), '--dry-run', '--batch', 'b-2');
    expect(other).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/line 1: batch: must be absent, or that of/),
    });
    expect((await importOffline(file, '--dry-run', '--batch', 'a b')).stderr).toMatch(/--batch: must be 1 to 64/);
  });

  it.each([
    [
      'an open quote',
      `${HEADER}\np-1,6,-1,T\np-2,6,1,"T\np-3,6,1,T`,
      [/^line 2: amount: /, /^payouts: line 3: opens/m],
    ],
    ['no rows', HEADER, [/contains no payouts/]],
    ['no content', '', [/contains no payouts/]],
    [
      'bytes that are not UTF-8',
      Buffer.from(`${HEADER},reference\np-1,6,1,T,M\xfcller`, 'latin1'),
      [/line 2: row: is not UTF-8/],
    ],
    [
      'invalid JSON lines',
      `{"payoutId":1}\n[1]\n{\n{"payoutId":"${'x'.repeat(200_000)}"}\n{"payoutId":"p 5"}`,
      [
        /^line 1: payoutId: must be a string/,
        /^line 2: row: is JSON, but not/m,
        /^line 3: row: is not/m,
        /^line 4: row: is longer than 65536 characters$/m,
        /^line 5: payoutId: must be/m,
      ],
    ],
  ])('refuses a file with %s', async (_, text, messages) => {
    const file = join(dir, 'refused');
    await writeFile(file, text);
    const { code, stderr } = await importOffline(file, '--dry-run');
    expect(code).toBe(2);
    for (const message of messages) expect(stderr).toMatch(message);
  });

  it('refuses a file with more rows than are kept in memory, before anything is enqueued', async () => {
    const rows = Array.from({ length: 250_001 }, (_, n) => `p-${n % 10},6,1,T`);
    const file = await save('long.csv', HEADER, rows.join('\n'));
    const { code, stdout, stderr } = await importOffline(file, '--dry-run');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`${file}: has more than 250000 rows: split the file`);
  }, 60_000);

  it('reports a payout that retention removed, which is not paid again', async () => {
    await account.enqueue('p-1');
    await account.force('p-1', 'completed');
    expect(await removePayouts(account.ledger.connection, 'completed', Date.now() + 1_000, 10)).toHaveLength(1);
    const file = await save('removed.csv', HEADER, 'p-1,6,12.5,TXYZ9', 'p-2,6,1,T');
    const { code, stdout, stderr } = await account.run('import', file, '--yes');
    expect(code).toBe(4);
    expect(stderr).toMatch(
      /^line 2: payout p-1 ended as completed and was removed .*It is not paid again; use a new payout_id/m,
    );
    expect(stdout).toMatch(/\n1 payout enqueued, 1 removed earlier\.\n$/);
  });

  it('counts existing payouts that belong to another batch', async () => {
    await account.enqueue('p-1');
    const file = await save('other.csv', HEADER, 'p-1,6,12.5,TXYZ9', 'p-2,6,1,T');
    const { stdout } = await account.run('import', file, '--yes', '--batch', 'b-1');
    expect(stdout).toMatch(
      /1 payout enqueued, 1 already existed\.\n1 of those that already existed belong to another batch/,
    );
    expect((await account.run('stats', '--batch', 'b-1', '--json')).stdout).toMatch(/"total":1/);
  });

  it('stops at a signal while it waits for a pipe, and accepts no row that may have been cut off', async () => {
    const input = `${HEADER}\np-1,6,-1,T\np-2,6,1,T\n`;
    const options = { env: account.env, input, inputStaysOpen: true } as const;
    const waiting = startCli(['import', '-', '--yes', '--skip-invalid'], options);
    await waiting.waitForOutput(/line 2: amount/);
    waiting.kill('SIGINT');
    expect(await waiting.result).toMatchObject({ code: 1, stderr: expect.stringMatching(/nothing was changed/) });
    const cut = await runCli(['import', '-', '--yes'], { env: account.env, input: `${HEADER}\np-1,6,1,TXYZ` });
    expect(cut).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^line 2: row: does not end with a line break/),
    });
  });

  it('refuses a file that cannot be read', async () => {
    expect(await importOffline(join(dir, 'none'), '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/none: cannot be read: ENOENT/),
    });
    expect((await importOffline(dir, '--yes')).stderr).toMatch(/cannot be read: EISDIR/);
  });
});

describe('payouts list --csv', () => {
  it('writes rows that can be imported again, with state and txhash', async () => {
    const metadata = '{"a":"x, \\"y\\""}';
    await account.enqueue('p-1', '--reference', 'Müller, "rent"', '--metadata', metadata, '--batch', 'b');
    await account.enqueue('p-2', '--priority', '3', '--not-before', '2030-01-31T09:00:00Z', '--batch', 'b');
    await account.force('p-1', 'completed');
    await account.ledger.connection.redis.hset(account.ledger.connection.keys.payout('p-1'), 'txhash', 'abc');
    const { code, stdout } = await account.run('list', '--batch', 'b', '--csv');
    expect(code).toBe(0);
    expect(stdout.replaceAll(/(?<=,)20[0-2]\d-[^,]*Z(?=,)/g, 'TIME')).toBe(
      [
        'payout_id,payment_id,amount,address_to,destination_tag,symbol,reference,priority,not_before,metadata,state,txhash,fee,message,batch,created_at,updated_at,late_txhash',
        'p-1,6,12.5,TXYZ9,,,"Müller, ""rent""",,,"{""a"":""x, \\""y\\""""}",completed,abc,,,b,TIME,TIME,',
        'p-2,6,12.5,TXYZ9,,,,3,2030-01-31T09:00:00.000Z,,queued,,,,b,TIME,TIME,',
        '',
      ].join('\n'),
    );
    const file = await save(
      'back.csv',
      ...stdout
        .trim()
        .split('\n')
        .map((line) => line.replace(/(,[^,]*){8}$/, '')),
    );
    const again = await account.run('import', file, '--yes', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ created: 0, existing: 2, conflicts: 0 });
  });
});
