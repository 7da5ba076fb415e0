import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

it('50 rules load a day of a send each second within a second, and decide within 2 ms, however many wait', async () => {
  // In a process of its own: modules of Jest run more slowly.
  const child = fileURLToPath(new URL('./support/policy-speed.ts', import.meta.url));
  const tries: object[] = [];
  for (let isWithin = false; !isWithin;) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child]);
    const cost = JSON.parse(stdout) as { loadMs: number; decideMs: readonly number[] };
    tries.push(cost);
    isWithin = cost.loadMs < 1_000 && cost.decideMs.every((ms) => ms < 2);
    // What runs beside it shares caches and memory: the best of several tries counts.
    if (tries.length === 4) expect({ tries, isWithin }).toMatchObject({ isWithin: true });
  }
});
