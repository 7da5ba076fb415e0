import { expect, it } from '@jest/globals';
import { ClockStepDetector, type ClockReading } from '../../src/worker/redis-clocks.js';

const exact = (offset: number): ClockReading => ({ low: offset, high: offset });

/** Which of the readings tell that the clock was put back. */
function findSteps(readings: readonly ClockReading[]): number[] {
  const detector = new ClockStepDetector();
  return readings.flatMap((reading, index) => (detector.note(reading) ? [index] : []));
}

it('tells of a clock that is put back, once, and not of one that is put forward', () => {
  expect(findSteps([exact(0), exact(3_600_000), exact(3_600_000), exact(0), exact(0)])).toEqual([3]);
});

it('tells of a step of a second each time', () => {
  expect(findSteps([exact(0), exact(-1_000), exact(-2_000)])).toEqual([1, 2]);
});

it('tells nothing of the steps by which a clock is kept right', () => {
  expect(findSteps([exact(0), exact(-50), exact(20), exact(-100)])).toEqual([]);
});

it('does not take a slow reply of Redis for a step', () => {
  expect(findSteps([exact(0), { low: -5_000, high: 0 }, { low: 0, high: 4_000 }, exact(0)])).toEqual([]);
});

it('notices a step that a slow reply has hidden', () => {
  const hidden = { low: -2_500, high: 500 };
  expect(findSteps([exact(0), hidden, exact(-1_000)])).toEqual([2]);
});

it('notices a clock that was put back little by little', () => {
  expect(findSteps([exact(0), exact(-150), exact(-300)])).toEqual([2]);
});
