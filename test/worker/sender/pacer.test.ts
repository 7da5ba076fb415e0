import { beforeEach, describe, expect, it } from '@jest/globals';
import { onAnyClock } from '../../../src/base/clock.js';
import { keptIntervalMs, Pacer } from '../../../src/worker/sender/pacer.js';
import { ManualClock } from '../../doubles/manual-clock.js';

let clock: ManualClock;
let pacer: Pacer;
beforeEach(() => {
  clock = new ManualClock();
  pacer = new Pacer(clock, { intervalMs: 1_010, inFlightMaxMs: 30_000 });
});

const never = new AbortController().signal;

it.each([
  [1_000, 1_001],
  [1_001, 1_001],
  [1_002, 1_002],
  [1_010, 1_010],
  [60_000, 60_000],
])('keptIntervalMs keeps %i as %i', (setMs, keptMs) => {
  expect(keptIntervalMs(setMs, 1_000)).toBe(keptMs);
  // A second at the gateway, also where its clock is the slowest that is assumed.
  expect(keptMs / onAnyClock(1)).toBeGreaterThanOrEqual(1_000);
});

describe('Pacer', () => {
  it('is open at first, and from the very moment until which it was held', async () => {
    expect(pacer.isOpen).toBe(true);
    pacer.holdUntil(clock.now() + 10);
    await clock.advance(9);
    expect(pacer.isOpen).toBe(false);
    await clock.advance(1);
    expect(pacer.isOpen).toBe(true);
  });

  it('opens an interval after a response', () => {
    pacer.afterResponse();
    expect(pacer.openAt).toBe(clock.now() + 1_010);
  });

  it('waits without a response until the request can be on its way no more, by any clock, and an interval longer', () => {
    pacer.afterNoResponse();
    expect(pacer.openAt).toBe(clock.now() + onAnyClock(30_000) + 1_010);
    expect(onAnyClock(30_000)).toBeCloseTo(30_030);
  });

  it('never opens earlier than it said before', () => {
    pacer.afterNoResponse();
    const { openAt } = pacer;
    pacer.afterResponse();
    pacer.holdUntil(0);
    expect(pacer.openAt).toBe(openAt);
  });

  it('lets wait until it is open, or a lead before that, and not at all when it is', async () => {
    await clock.until(pacer.waitUntilOpen(never));
    expect(clock.now()).toBe(5_000);
    pacer.holdUntil(9_000);
    await clock.until(pacer.waitUntilOpen(never, 1_000));
    expect(clock.now()).toBe(8_000);
    await clock.until(pacer.waitUntilOpen(never));
    expect(clock.now()).toBe(9_000);
  });

  it('waits on when a timer fires early, or it was held longer in the meantime', async () => {
    const earlyClock = {
      now: () => clock.now(),
      wallNow: () => clock.wallNow(),
      sleep: async (ms: number) => clock.sleep(ms > 10 ? ms - 5 : ms),
    };
    const early = new Pacer(earlyClock, { intervalMs: 1_010, inFlightMaxMs: 0 });
    early.holdUntil(7_000);
    const waiting = early.waitUntilOpen(never);
    await clock.advance(500);
    early.holdUntil(8_000);
    await clock.until(waiting);
    expect(clock.now()).toBe(8_000);
  });

  it('ends the wait when the signal is aborted', async () => {
    pacer.holdUntil(9_000);
    const stop = new AbortController();
    const waiting = pacer.waitUntilOpen(stop.signal);
    await clock.advance(100);
    stop.abort();
    await clock.until(waiting);
    expect(clock.now()).toBe(5_100);
    expect(pacer.isOpen).toBe(false);
  });
});
