import { expect, it } from '@jest/globals';
import { noObserver, observeReached } from '../../../src/worker/sender/worker-observer.js';

const NOON = Date.UTC(2030, 0, 1, 12);
const at = (minutes: number) => new Date(NOON + minutes * 60_000).toISOString();

it.each([
  ['it was enqueued', { createdAt: at(0) }, 10],
  ['its notBefore came', { createdAt: at(0), notBefore: at(8) }, 2],
  ['it was enqueued after its notBefore', { createdAt: at(8), notBefore: at(0) }, 2],
  ['it was enqueued, by a clock that is ahead', { createdAt: at(12) }, 0],
  ['never, if someone altered its times', { createdAt: '' }, undefined],
])('what a payout took counts since %s', (_since, payout, minutes) => {
  const seen: [string, number][] = [];
  const observer = { ...noObserver, reached: (state: string, afterMs: number) => void seen.push([state, afterMs]) };
  observeReached(observer, 'sent', payout, NOON + 10 * 60_000);
  expect(seen).toEqual(minutes === undefined ? [] : [['sent', minutes * 60_000]]);
});
