import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import { makeWorldRig } from '../../world/world-rig.js';
import type { WorkerLedger } from '../../world/ledger-link.js';
import type { Pieces } from '../../world/worker.js';
import { orderings, type OrderingsOptions } from './orderings.js';

const ORDERINGS = 60;
const ORDERINGS_AT_MOST = 2_000;

const makeRig = (): ReturnType<typeof makeWorldRig> => makeWorldRig();

describe('whatever the order of sender, polls, recovery, operators and the gateway', () => {
  it.each<[string, number, OrderingsOptions]>([
    ['in memory', ORDERINGS, { makeRig }],
    ['in Redis', ORDERINGS / 4, { makeRig: makeRedisRig }],
  ])('each payout is paid once at most, and none is lost, with the ledger %s', async (_, numRuns, options) => {
    const counts = { begun: 0, paid: 0 };
    await fc.assert(orderings(counts, options), { numRuns });
    expect(counts.paid).toBeGreaterThan(numRuns / 10);
  });

  it.each<[string, RegExp, OrderingsOptions]>([
    ['a begin that ignores the pause', /not stopped:/, { makeRig: makeRigThatIgnoresPauses }],
    // What comes before or instead of the second payment shows it too: paid, and yet queued or rejected.
    ['a payout without a response that is sent again', /twice:|, but was paid/, { makeRig, pieces: makeHasty() }],
  ])('notices a planted mistake: %s', async (_, broken, options) => {
    const property = orderings({ begun: 0, paid: 0 }, options);
    const { failed, errorInstance } = await fc.check(property, { numRuns: ORDERINGS_AT_MOST, endOnFailure: true });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(broken);
  });
});

function makeRigThatIgnoresPauses(): ReturnType<typeof makeWorldRig> {
  const rig = makeWorldRig();
  const { ledger } = rig;
  const beginSend = ledger.beginSend.bind(ledger);
  ledger.beginSend = async (begin) => {
    const wasPaused = await ledger.resume();
    const reply = await beginSend(begin);
    if (wasPaused === true) await ledger.pause('as before');
    return reply;
  };
  return rig;
}

function makeHasty(): Partial<Pieces> {
  return {
    wrapLedger: (ledger: WorkerLedger) => ({
      ...ledger,
      finishSend: async (attempt, result, ...rest) => {
        if (result.kind !== 'unknown') return ledger.finishSend(attempt, result, ...rest);
        await ledger.revertSend(attempt, 'no response');
        return { recorded: true };
      },
    }),
  };
}
