import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const CHECK = new URL('support/check-wallets.ts', import.meta.url).href;
/** Outside of jest, where globals are slow, the same takes half of the time. */
const PROCESSES = 2;
const WALLETS = 1_000_000;

it('a million random wallets of a second encoder are known in all their spellings, and refused with a wrong letter', async () => {
  const program = `import { checkWallets } from '${CHECK}'; console.log(checkWallets(${WALLETS / PROCESSES}));`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const runs = Array.from({ length: PROCESSES }, async () => promisify(execFile)(process.execPath, args));
  for (const { stdout } of await Promise.all(runs)) {
    expect(Number(stdout)).toBeGreaterThan(WALLETS / PROCESSES / 2);
  }
}, 900_000);
