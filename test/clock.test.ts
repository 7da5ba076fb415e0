import { getEventListeners } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { every, followSignals, LONGEST_TIMER_MS, systemClock, within } from '../src/base/clock.js';
import { ManualClock } from './doubles/manual-clock.js';

it.each([LONGEST_TIMER_MS + 1, 1e10, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY])(
  'a sleep of %d ms, longer than a timer can wait, does not end early, but when it is told to',
  async (ms) => {
    const stop = new AbortController();
    let isOver = false;
    const sleep = systemClock.sleep(ms, stop.signal).then(() => {
      isOver = true;
    });
    await systemClock.sleep(100);
    expect(isOver).toBe(false);
    stop.abort();
    await sleep;
  },
);

it('a sleep ends at its time, and one of no time at once', async () => {
  const startedAt = systemClock.now();
  await systemClock.sleep(0);
  await systemClock.sleep(-5);
  await systemClock.sleep(30);
  // Timers may fire a little early.
  expect(systemClock.now() - startedAt).toBeGreaterThanOrEqual(28);
});

it('a signal of several is aborted with any of them, and leaves nothing on those that live on', () => {
  const [process, lease] = [new AbortController(), new AbortController()];
  for (let turn = 0; turn < 100; turn += 1) followSignals(process.signal, lease.signal).end();
  expect(getEventListeners(process.signal, 'abort')).toEqual([]);
  const { signal } = followSignals(process.signal, lease.signal);
  expect(signal.aborted).toBe(false);
  lease.abort();
  expect(signal.aborted).toBe(true);
  expect(getEventListeners(process.signal, 'abort')).toEqual([]);
  expect(followSignals(process.signal, lease.signal).signal.aborted).toBe(true);
});

it('a sleep leaves nothing on its signal, however it ended, and does not begin where the signal was aborted', async () => {
  const stop = new AbortController();
  const listeners = (): number => getEventListeners(stop.signal, 'abort').length;
  const long = systemClock.sleep(60_000, stop.signal);
  await systemClock.sleep(1, stop.signal);
  expect(listeners()).toBe(1);
  stop.abort();
  await long;
  expect(listeners()).toBe(0);
  await systemClock.sleep(60_000, stop.signal);
});

describe('every', () => {
  /** Notes each wait, and ends the loop after some of them. */
  const loopClock = (
    waits: number,
    stop: AbortController,
  ): { slept: number[]; sleep: (ms: number) => Promise<void> } => {
    const slept: number[] = [];
    const sleep = async (ms: number): Promise<void> => {
      slept.push(ms);
      if (slept.length === waits) stop.abort();
      return Promise.resolve();
    };
    return { slept, sleep };
  };
  const ignore = (): void => undefined;

  it('runs at once and after each wait, until the signal is aborted', async () => {
    const stop = new AbortController();
    const clock = loopClock(3, stop);
    let runs = 0;
    const work = async (): Promise<void> => {
      runs += 1;
      return Promise.resolve();
    };
    await every(500, work, { clock, signal: stop.signal, onError: ignore });
    expect([runs, clock.slept]).toEqual([3, [500, 500, 500]]);
    await every(500, work, { clock, signal: stop.signal, onError: ignore });
    expect(runs).toBe(3);
  });

  it('waits first if asked to, and does not run when it is aborted in that wait', async () => {
    const stop = new AbortController();
    const clock = loopClock(2, stop);
    let runs = 0;
    const work = (): void => {
      runs += 1;
    };
    await every(500, work, { clock, signal: stop.signal, onError: ignore, waitsFirst: true });
    expect([runs, clock.slept]).toEqual([1, [500, 500]]);
  });

  it('goes on after an error, thrown or rejected, and tells it', async () => {
    const stop = new AbortController();
    const clock = loopClock(4, stop);
    const errors: string[] = [];
    let runs = 0;
    await every(
      500,
      // Not async: the first error is thrown.
      (): Promise<number> => {
        runs += 1;
        if (runs === 1) throw new Error('thrown');
        return runs === 2 ? Promise.reject(new Error('rejected')) : Promise.resolve(runs === 3 ? 7 : 0);
      },
      { clock, signal: stop.signal, onError: ({ message }) => errors.push(message) },
    );
    expect([errors, clock.slept]).toEqual([
      ['thrown', 'rejected'],
      [500, 500, 7, 0],
    ]);
  });

  it('ends at once while it waits, and leaves nothing on its signal', async () => {
    const stop = new AbortController();
    const ran = new AbortController();
    const work = (): void => {
      ran.abort();
    };
    const loop = every(60_000, work, { clock: systemClock, signal: stop.signal, onError: ignore });
    expect(ran.signal.aborted).toBe(true);
    await systemClock.sleep(1);
    stop.abort();
    await loop;
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });
});

describe('within', () => {
  it('returns what the work comes to before the limit, and leaves no timer running', async () => {
    const clock = new ManualClock();
    const sleeps: (AbortSignal | undefined)[] = [];
    const watched = {
      sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
        sleeps.push(signal);
        return clock.sleep(ms, signal);
      },
    };
    expect(await within(1_000, Promise.resolve('done'), watched)).toBe('done');
    expect(sleeps.map((signal) => signal?.aborted)).toEqual([true]);
  });

  it('returns undefined at the limit and not before, and ignores a later failure', async () => {
    const clock = new ManualClock();
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<string>((_, reject) => {
      fail = reject;
    });
    let result: unknown = 'waiting';
    const waiting = within(1_000, work, clock).then((came) => {
      result = came;
    });
    await clock.advance(999);
    expect(result).toBe('waiting');
    await clock.advance(1);
    await waiting;
    expect(result).toBeUndefined();
    fail(new Error('too late'));
  });

  it('throws what the work throws before the limit', async () => {
    await expect(within(1_000, Promise.reject(new Error('broken')), new ManualClock())).rejects.toThrow('broken');
  });
});
