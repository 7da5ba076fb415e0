import { describe, expect, it } from '@jest/globals';
import { runTasks } from './command-line.js';

const PROGRAM = {
  url: new URL('fixtures/doubling-child.ts', import.meta.url).href,
  run: async (number: number) => Promise.resolve(number),
};

describe('runTasks', () => {
  it('runs each task once, whatever the number of processors, and tells its result with it', async () => {
    const results = new Map<number, number>();
    let told = 0;
    await runTasks(PROGRAM, [1, 2, 3, 4, 5, 6, 7], (result, task) => {
      told += 1;
      results.set(task, result);
    });
    expect(told).toBe(7);
    expect([...results].sort(([one], [other]) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => [n, 2 * n]));
  });

  it('fails where a child ends before its task is done: a proof that was not run must not pass', async () => {
    await expect(runTasks(PROGRAM, [1, -1, 2], () => undefined)).rejects.toThrow(
      'a child process ended with 3 before its task was done',
    );
  });
});
