import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

type Costs<Name extends string> = Readonly<Record<Name, number>>;

it('a send costs no more to load in a day of them than in an hour, nor to decide when 100,000 wait', async () => {
  // In a process of its own: modules of Jest run more slowly.
  const child = fileURLToPath(new URL('./support/policy-speed.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child]);
  const { loading, asking } = JSON.parse(stdout) as {
    loading: Costs<'hour' | 'day'>;
    asking: Costs<'few' | 'many' | 'between'>;
  };
  // A cost that grew with what is there would be 24 and 100 times as high.
  expect(loading.day / loading.hour).toBeLessThan(6);
  expect(Math.max(asking.many, asking.between) / asking.few).toBeLessThan(10);
});
