import { expect, it } from '@jest/globals';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import type { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import { OwnSends } from '../../../src/worker/sender/own-sends.js';
import { LedgerCheck } from '../../../src/worker/sender/ledger-check.js';
import { Candidate, type CheckContext, runSendChecks, SEND_CHECKS } from '../../../src/worker/sender/send-checks.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { alterPayout, setFields } from '../../world/world-ledger.js';
import { journaled, makeSendRig } from '../support/send-rig.js';

interface World {
  readonly rig: Awaited<ReturnType<typeof makeSendRig>>;
  readonly context: CheckContext;
  readonly faults: { hindrance?: string; isRefused?: true; unwritten?: true; pause?: string };
}

async function openWorld(): Promise<World> {
  const faults: World['faults'] = {};
  const authority: SenderRuntime['authority'] = {
    permit: () => (faults.isRefused ? { kind: 'refused', hold: HOLD } : { kind: 'granted' }),
    keepRejections: async () => {
      await Promise.resolve();
      if (faults.unwritten) throw new Error('no space for a rejection');
    },
  };
  const rig = await makeSendRig({ authority, hindrance: () => faults.hindrance });
  const { runtime, heldLease, recovery } = rig;
  const pause: Pick<KeptPause, 'find' | 'reason'> = {
    find: async () => Promise.resolve(faults.pause),
    get reason() {
      return faults.pause;
    },
  };
  const sends = new OwnSends(heldLease.view, runtime.journal, runtime.clock.now());
  const check = new LedgerCheck(runtime, heldLease, sends);
  return { rig, faults, context: { runtime, heldLease, recovery, check, pause: pause as KeptPause } };
}

/** What makes each check fail, by its name, and what it then reports. */
const FAILURES: Readonly<Record<string, readonly [cause: (world: World) => unknown, report: object]>> = {
  'the send journal can be written': [
    ({ rig }) => (rig.journal.failWith = new Error('ENOSPC')),
    { kind: 'not_sent', reason: 'ENOSPC' },
  ],
  'journal and ledger agree on what others wrote to the journal': [
    ({ rig }) => {
      rig.journal.damage();
    },
    { kind: 'ledger_mismatch', mismatch: { kind: 'journal' } },
  ],
  'Redis keeps its writes': [
    ({ faults }) => (faults.hindrance = 'no replica'),
    { kind: 'not_sent', reason: 'no replica', code: 'REDIS_UNAVAILABLE' },
  ],
  'no pause is kept in the journal': [({ faults }) => (faults.pause = 'lunch'), { kind: 'paused', reason: 'lunch' }],
  'the payout is queued': [
    async ({ rig }) => rig.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' }),
    { kind: 'skipped', state: 'cancelled' },
  ],
  'the record is a payout': [
    ({ rig }) => {
      alterPayout(rig.ledger, 'p', { paymentId: NaN });
    },
    { kind: 'skipped', state: 'held' },
  ],
  'its `notBefore` has passed': [
    ({ rig }) => {
      setFields(rig.ledger, rig.ledger.connection.keys.payout('p'), { notBefore: '2099-01-01T00:00:00.000Z' });
    },
    { kind: 'early', notBefore: Date.parse('2099-01-01T00:00:00.000Z') },
  ],
  'the journal does not know it as sent': [
    ({ rig }) => {
      rig.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 't-9' }));
    },
    { kind: 'ledger_mismatch', mismatch: { kind: 'ledger' } },
  ],
  'the journal does not know it as ended': [
    ({ rig }) => (rig.journal.hasEnded = () => true),
    { kind: 'skipped', state: 'held' },
  ],
  'signatures and policy permit it': [({ faults }) => (faults.isRefused = true), { kind: 'skipped', state: 'held' }],
  "people's rejections are in the journal": [
    ({ faults }) => (faults.unwritten = true),
    { kind: 'not_sent', reason: 'no space for a rejection' },
  ],
};

it('the list of causes has each check', () => {
  expect(Object.keys(FAILURES)).toEqual(SEND_CHECKS.map(({ name }) => name));
});

const names = SEND_CHECKS.map(({ name }) => name);

/** All that makes this check fail, and those after it; the last of them would forbid every hold. */
async function fail(world: World, name: string, which: readonly string[] = names) {
  const failing = which.slice(which.indexOf(name)).filter((each) => each === name || each !== names.at(-1));
  for (const each of failing) await FAILURES[each]?.[0](world);
}

it.each(names)('before the connection it counts first of what fails from there on: %s', async (name) => {
  const world = await openWorld();
  await fail(world, name);
  expect(await runSendChecks(world.context, new Candidate('p'), 'find')).toMatchObject(FAILURES[name]?.[1] ?? {});
});

const again = SEND_CHECKS.filter((check) => check.again !== undefined).map(({ name }) => name);

it.each(again)('before the begin it counts first of what fails from there on: %s', async (name) => {
  const world = await openWorld();
  const candidate = new Candidate('p');
  expect(await runSendChecks(world.context, candidate, 'find')).toBeUndefined();
  await fail(world, name, again);
  expect(await runSendChecks(world.context, candidate, 'again')).toMatchObject(FAILURES[name]?.[1] ?? {});
});

it.each([
  ['Redis keeps its writes', 'REDIS_UNAVAILABLE'],
  ['signatures and policy permit it', 'held'],
])('a sender runs it again once it is connected, and begins nothing: %s', async (name, told) => {
  const world = await openWorld();
  const { gateway, ledger } = world.rig;
  const open = gateway.openConnection.bind(gateway);
  gateway.openConnection = async () => {
    await fail(world, name, [name]);
    return open();
  };
  expect(JSON.stringify(await world.rig.send())).toMatch(told);
  world.rig.expectNothingSent();
  expect([gateway.connections.length, (await ledger.readPayout('p'))?.attempt]).toEqual([1, 0]);
});
