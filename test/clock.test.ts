import { getEventListeners, getMaxListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import { every, followSignals, LONGEST_TIMER_MS, systemClock, within } from '../src/base/clock.js';
import { ManualClock } from './doubles/manual-clock.js';

const listeners = ({ signal }: AbortController) => getEventListeners(signal, 'abort').length;

it.each([LONGEST_TIMER_MS + 1, Number.POSITIVE_INFINITY])(
  'a sleep of %d ms does not end before it is told to',
  async (ms) => {
    const stop = new AbortController();
    let isOver = false;
    const sleep = systemClock.sleep(ms, stop.signal).then(() => (isOver = true));
    await systemClock.sleep(50);
    expect(isOver).toBe(false);
    stop.abort();
    await sleep;
  },
);

it('a sleep leaves nothing on its signal, and does not begin where that was aborted', async () => {
  const stop = new AbortController();
  const long = systemClock.sleep(60_000, stop.signal);
  await systemClock.sleep(1, stop.signal);
  expect(listeners(stop)).toBe(1);
  stop.abort();
  await long;
  expect(listeners(stop)).toBe(0);
  await systemClock.sleep(60_000, stop.signal);
});

it('a signal of several is aborted with any of them, and leaves nothing on those that live on', () => {
  const [process, lease] = [new AbortController(), new AbortController()];
  for (let turn = 0; turn < 100; turn += 1) followSignals(process.signal, lease.signal).end();
  expect(listeners(process)).toBe(0);
  const { signal } = followSignals(process.signal, lease.signal);
  expect(signal.aborted).toBe(false);
  lease.abort();
  expect([signal.aborted, listeners(process)]).toEqual([true, 0]);
  expect(followSignals(process.signal, lease.signal).signal.aborted).toBe(true);
});

it('as many loops as an account has wait on such a signal before Node warns, which it still does', () => {
  const { signal } = followSignals(new AbortController().signal);
  expect(getMaxListeners(signal)).toBeGreaterThan(20);
  expect(getMaxListeners(signal)).toBeLessThan(100);
});

/** Runs the work each 500 ms until it has waited that often. @returns its waits and what it threw */
async function loop(waits: number, work: () => unknown, options: { readonly waitsFirst?: true } = {}) {
  const stop = new AbortController();
  const [slept, errors]: [number[], string[]] = [[], []];
  const sleep = async (ms: number) => {
    slept.push(ms);
    if (slept.length === waits) stop.abort();
    return Promise.resolve();
  };
  const given = { clock: { sleep }, signal: stop.signal, onError: (error: Error) => void errors.push(error.message) };
  const run = async () => every(500, work, { ...given, ...options });
  await run();
  return { slept, errors, run };
}

it.each<[string, { readonly waitsFirst?: true }, waits: number, runs: number]>([
  ['at once and after each wait', {}, 3, 3],
  ['after the first wait if asked to', { waitsFirst: true }, 2, 1],
])('every runs %s, until the signal is aborted', async (_, options, waits, expected) => {
  let runs = 0;
  const { slept, run } = await loop(waits, () => void (runs += 1), options);
  expect([runs, slept]).toEqual([expected, Array(waits).fill(500)]);
  await run();
  expect(runs).toBe(expected);
});

it('every goes on after an error, thrown or rejected, tells it, and waits as long as the work says', async () => {
  let runs = 0;
  // Not async: the first error is thrown.
  const { slept, errors } = await loop(4, () => {
    runs += 1;
    if (runs === 1) throw new Error('thrown');
    return runs === 2 ? Promise.reject(new Error('rejected')) : Promise.resolve(runs === 3 ? 7 : 0);
  });
  expect([errors, slept]).toEqual([
    ['thrown', 'rejected'],
    [500, 500, 7, 0],
  ]);
});

it('within returns what the work comes to before the limit, and leaves no timer running', async () => {
  const clock = new ManualClock();
  const signals: (AbortSignal | undefined)[] = [];
  const sleep = async (ms: number, signal?: AbortSignal) => {
    signals.push(signal);
    return clock.sleep(ms, signal);
  };
  expect(await within(1_000, Promise.resolve('done'), { sleep })).toBe('done');
  expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  await expect(within(1_000, Promise.reject(new Error('broken')), clock)).rejects.toThrow('broken');
});

it('within returns undefined at the limit and not before, and ignores a later failure', async () => {
  const clock = new ManualClock();
  let fail: (error: Error) => void = () => undefined;
  let result: unknown = 'waiting';
  const work = new Promise<string>((_, reject) => (fail = reject));
  const waiting = within(1_000, work, clock).then((came) => (result = came));
  await clock.advance(999);
  expect(result).toBe('waiting');
  await clock.advance(1);
  await waiting;
  expect(result).toBeUndefined();
  fail(new Error('too late'));
});
