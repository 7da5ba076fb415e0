import { constants } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { PayoutSpool, type SpooledPayout } from '../../../src/cli/import/payout-spool.js';

function payout(line: number): SpooledPayout {
  return {
    line,
    payout: { payoutId: `p-${line}`, paymentId: 6, amount: '1', addressTo: 'T', reference: `Jürgen ${line}` },
  };
}

describe('PayoutSpool', () => {
  it('gives back what was written, from any place, while it is still being written', async () => {
    const spool = await PayoutSpool.create();
    const offsets: number[] = [];
    for (let line = 2; line < 5_000; line += 1) {
      offsets.push(spool.write(payout(line)));
      const back = line % 97;
      if (back < offsets.length) {
        expect(spool.readAt(offsets.at(-1 - back) ?? 0)).toEqual(payout(line - back));
      }
    }
    let line = 2;
    for await (const spooled of spool.read()) {
      expect(spooled).toEqual(payout(line));
      line += 1;
    }
    expect(line).toBe(5_000);
    await spool.close();
  });

  it('holds the longest payout that there can be', async () => {
    const spool = await PayoutSpool.create();
    const longest: SpooledPayout = {
      line: 1,
      payout: {
        payoutId: 'p'.repeat(64),
        paymentId: Number.MAX_SAFE_INTEGER,
        amount: `${'9'.repeat(30)}.${'9'.repeat(18)}`,
        addressTo: `r:${'€'.repeat(254)}`,
        reference: '"'.repeat(200),
        metadata: '€'.repeat(1_364),
        notBefore: new Date(0).toISOString(),
        batch: 'b'.repeat(64),
      },
    };
    expect(spool.readAt(spool.write(longest))).toEqual(longest);
    await spool.close();
  });

  it('is an unlinked file: nothing is left of it, and no other user can read it', async () => {
    if (process.platform !== 'linux') return;
    const spool = await PayoutSpool.create();
    spool.write(payout(2));
    spool.readAt(0);
    const found: { mode: number; nlink: number }[] = [];
    for (const fd of await readdir('/proc/self/fd')) {
      const file = `/proc/self/fd/${fd}`;
      const { mode, nlink } = await stat(file).catch(() => ({ mode: 0, nlink: 0 }));
      const isFile = (mode & constants.S_IFMT) === constants.S_IFREG;
      if (isFile && (await readFile(file, 'utf8')).includes('"payoutId":"p-2"'))
        found.push({ mode: mode & 0o777, nlink });
    }
    expect(found).toEqual([{ mode: 0o600, nlink: 0 }]);
    await spool.close();
  });
});
