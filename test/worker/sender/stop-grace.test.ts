import { beforeEach, describe, expect, it } from '@jest/globals';
import { StopGrace } from '../../../src/worker/sender/attempt-recorder.js';
import { ManualClock } from '../../doubles/manual-clock.js';

const GRACE_MS = 10_000;

let clock: ManualClock;
let stop: AbortController;
let grace: StopGrace;

beforeEach(() => {
  clock = new ManualClock();
  stop = new AbortController();
  grace = new StopGrace(clock, stop.signal, GRACE_MS);
});

describe('the grace of a process that is to stop', () => {
  it('is not over while nobody asks it to stop', async () => {
    const isOver = grace.start();
    await clock.advance(100 * GRACE_MS);
    expect(isOver()).toBe(false);
  });

  it('begins at the stop, where that comes later', async () => {
    const isOver = grace.start();
    expect(isOver()).toBe(false);
    await clock.advance(5 * GRACE_MS);
    stop.abort();
    expect(isOver()).toBe(false);
    await clock.advance(GRACE_MS - 1);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    expect(isOver()).toBe(true);
  });

  it('begins with the waiting, such as for a response, where that comes later', async () => {
    stop.abort();
    await clock.advance(5 * GRACE_MS);
    const isOver = grace.start();
    expect(isOver()).toBe(false);
    await clock.advance(GRACE_MS - 1);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    expect(isOver()).toBe(true);
  });

  it('is reckoned for each thing that is waited for', async () => {
    stop.abort();
    const first = grace.start();
    first();
    await clock.advance(GRACE_MS);
    const second = grace.start();
    expect([first(), second()]).toEqual([true, false]);
  });
});
