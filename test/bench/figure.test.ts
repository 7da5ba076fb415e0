import { expect, it } from '@jest/globals';
import { figure, findEmpty, judge } from '../../bench/figure.js';

it.each([
  ['no number', NaN, { atMost: 5 }, true],
  ['no bound', Infinity, { atMost: 5 }, true],
  ['nothing where much is wanted', 0, { atLeast: 0.7 }, true],
  ['nothing where little is wanted', 0, { atMost: 5 }, true],
  ['no mistake', 0, { atMost: 0 }, false],
  ['little', 0.001, { atLeast: 0.7 }, false],
])('a figure of %s fails every run: %d of %j is empty: %s', (_, value, target, isEmpty) => {
  expect(findEmpty([figure('it', value, target)])).toEqual(isEmpty ? ['it'] : []);
});

it('a target is reached or missed in the full form, and not judged in the short one', () => {
  const [reached, missed] = [figure('r', 1, { atMost: 1 }), figure('m', 2, { atMost: 1 })];
  expect([reached.reached, missed.reached]).toEqual([true, false]);
  expect([judge(reached, false), judge(missed, false)]).toEqual(['reached', 'MISSED ']);
  expect([judge(reached, true), judge(missed, true)]).toEqual(Array(2).fill('not judged in the short form'));
});
