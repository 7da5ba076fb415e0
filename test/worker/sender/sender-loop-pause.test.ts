import { afterEach, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import { endAll, LEASE_MS, makeLoop, makeLoopWorld, type LoopWorld } from '../support/loop-rig.js';
import { makeRuntime } from '../support/sender-runtime.js';

let world: LoopWorld;

afterEach(async () => endAll(world));

const authority: SendAuthority = {
  permit: () => {
    throw new Error('a paused account asks for no permit');
  },
};
const resumeAuthority: ResumeAuthority = {
  judgeResume: () => ({ kind: 'refused', message: 'there is no signed act' }),
};

function makePause({ clock, ledger }: LoopWorld): { journal: MemoryJournal; pause: KeptPause } {
  const journal = new MemoryJournal('j-one');
  return { journal, pause: new KeptPause(makeRuntime({ clock, senderLedger: ledger, journal }), resumeAuthority) };
}

it('keeps a pause that its own worker makes: one that is missing in Redis holds all the same', async () => {
  world = makeLoopWorld();
  world.ledger.enqueue(aPayout('p'));
  let report: SendReport | undefined;
  const { journal, pause } = makePause(world);
  const rig = makeLoop(world, {
    ...{ authority, journal, pause },
    work: async ({ sender }: ActiveSender, end) => {
      pause.note('looks like a block');
      report = await sender.send('p', end);
      await untilAborted(end);
    },
  });
  rig.start();
  await world.clock.advance(LEASE_MS + 1_000);
  expect(rig.journal.pausedReason).toBe('looks like a block');
  expect(report).toMatchObject({ kind: 'paused', reason: expect.stringContaining('not ended by a signed act') });
});

it('keeps the pauses in what it is given, which outlives it where the account moves and comes back', async () => {
  world = makeLoopWorld();
  const { journal, pause } = makePause(world);
  const rig = makeLoop(world, {
    ...{ journal, pause },
    work: async (_, end) => {
      pause.note('looks like a block');
      await untilAborted(end);
    },
  });
  rig.start();
  await world.clock.advance(LEASE_MS + 1_000);
  expect(pause.reason).toBe('looks like a block');
});
