import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ValidPayout } from '../../../src/ledger/payout.js';
import { DEMO_FILE, readDemoPayouts } from '../../../src/cli/demo/demo-command.js';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

async function write(...lines: string[]): Promise<string> {
  const file = join(dir, 'payouts.csv');
  await writeFile(file, `${lines.join('\r\n')}\r\n`);
  return file;
}

const HEADER = 'payout_id,payment_id,amount,address_to,destination_tag,symbol,reference';

async function read(file: string, count?: number): Promise<ValidPayout[]> {
  return readDemoPayouts(file, new AbortController().signal, count);
}

describe('readDemoPayouts', () => {
  it('reads the 20 payouts of the package', async () => {
    const payouts = await read(DEMO_FILE);
    expect(payouts).toHaveLength(20);
    expect(payouts[4]).toMatchObject({ amount: '150.25', addressTo: expect.stringMatching(/:4711$/) });
  });

  it('repeats them with new ids when more are wanted', async () => {
    const file = await write(`\uFEFF${HEADER}`, 'a,6,1.50,T9,,USD,"Anna, October"', '', 'b,6,2,T8,,,');
    expect((await read(file, 1)).map(({ reference }) => reference)).toEqual(['Anna, October']);
    expect((await read(file, 5)).map(({ payoutId, amount }) => [payoutId, amount])).toEqual([
      ['a', '1.5'],
      ['b', '2'],
      ['a-2', '1.5'],
      ['b-2', '2'],
      ['a-3', '1.5'],
    ]);
  });

  it.each([
    [
      [HEADER, 'a,6,0,T9,,,', 'b,six,1,T9,,,'],
      /payouts\.csv: line 2: amount: must be more than 0.*line 3: payment_id: must be/,
    ],
    [[HEADER, 'a,6,1,T9,,,', 'a,6,2,T9,,,'], /line 3: payout_id: already used in line 2 with a different amount/],
    [[`${HEADER},colour`, 'a,6,1,T9,,,,red'], /line 1: "colour": is not a known column \(payout_id/],
    [[HEADER, 'a,6'], /line 2: row: has 2 values/],
    [[HEADER], /payouts\.csv: contains no payouts/],
  ])('reports the problem with %j', async (lines, problem) => {
    await expect(read(await write(...lines))).rejects.toThrow(problem);
  });

  it('reports a missing file', async () => {
    await expect(read(join(dir, 'none.csv'))).rejects.toThrow(/cannot be read: ENOENT/);
  });
});
