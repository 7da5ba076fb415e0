import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

it('a send costs no more to load in a day of them than in an hour, nor to decide when 100,000 wait', async () => {
  // In a process of its own: modules of Jest run more slowly.
  const child = fileURLToPath(new URL('./support/policy-speed.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child]);
  type Costs = Readonly<Record<'hour' | 'day' | 'few' | 'many' | 'between', number>>;
  const { hour, day, few, many, between } = JSON.parse(stdout) as Costs;
  // A cost that grew with what is there would be 24 and 100 times as high.
  expect(day / hour).toBeLessThan(6);
  expect(Math.max(many, between) / few).toBeLessThan(10);
});
