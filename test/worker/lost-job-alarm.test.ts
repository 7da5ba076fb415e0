import { describe, expect, it } from '@jest/globals';
import { LostJobAlarm } from '../../src/worker/restore-lost-jobs.js';

describe('LostJobAlarm', () => {
  it('takes two looks in a row', () => {
    const alarm = new LostJobAlarm();
    expect([3, 0, 5, 0, 1, 1].map((lost) => alarm.isDue(lost))).toEqual([false, false, false, false, false, true]);
  });

  it('says so until an exact check was made', () => {
    const alarm = new LostJobAlarm();
    expect([2, 2, 2].map((lost) => alarm.isDue(lost))).toEqual([false, true, true]);
    alarm.noteCheck(2, 0);
    expect([0, 2, 2].map((lost) => alarm.isDue(lost))).toEqual([false, false, true]);
  });

  it('takes what a check found nothing behind for normal, while it lasts', () => {
    const alarm = new LostJobAlarm();
    alarm.isDue(4);
    alarm.isDue(3);
    alarm.noteCheck(0, 3);
    expect([3, 3, 4, 4].map((lost) => alarm.isDue(lost))).toEqual([false, false, false, true]);
    alarm.noteCheck(1, 3);
    expect([3, 3].map((lost) => alarm.isDue(lost))).toEqual([false, true]);
    alarm.noteCheck(0, 3);
    expect([1, 2, 2].map((lost) => alarm.isDue(lost))).toEqual([false, false, true]);
  });

  it('sees a missing job behind those whose payouts have left the queue', () => {
    const alarm = new LostJobAlarm();
    alarm.noteCheck(0, -5);
    expect([-5, -4, -4].map((lost) => alarm.isDue(lost))).toEqual([false, false, true]);
    alarm.noteCheck(1, -5);
    expect([-5, -5, -6].map((lost) => alarm.isDue(lost))).toEqual([false, false, false]);
    // One of the five jobs had its turn.
    expect([-4, -4].map((lost) => alarm.isDue(lost))).toEqual([false, true]);
    alarm.noteCheck(0, -4);
    expect([-4, -4].map((lost) => alarm.isDue(lost))).toEqual([false, false]);
  });

  it('does not take damage that comes during a check for normal', () => {
    const alarm = new LostJobAlarm();
    alarm.noteCheck(0, 7);
    expect([7, 7].map((lost) => alarm.isDue(lost))).toEqual([false, true]);
  });
});
