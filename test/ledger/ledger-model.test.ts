import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { StateChange } from '../../src/ledger/payout-ledger.js';
import type { BreakerRule, Lease, LeaseView, SendAttempt, SendResult } from '../../src/ledger/sender-ledger.js';
import { TRANSITIONS } from '../../src/ledger/states.js';
import { makeMemoryRig } from '../simulation/support/memory-rig.js';
import { nextBegin, type LedgerRig } from './contract/ledger-rig.js';
import { makeRedisRig } from './support/redis-rig.js';

/** Random commands, given to the ledger in Redis and to the one in memory, get the same replies and leave the same records. */

const PAYOUT_IDS = ['p', 'q', 'r', 's', 't'];
const RULE: BreakerRule = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

/** What a command may refer to: what was seen on the way there. The newest is last. */
interface Seen {
  readonly leases: Lease[];
  readonly views: (LeaseView | undefined)[];
  readonly attempts: SendAttempt[];
}

/** One step, the same for both ledgers. */
type Command = (rig: LedgerRig, seen: Seen) => Promise<unknown>;

/** Mostly 0, the right value; else something near it. */
const offset = fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(-1, 1, 2) });
const payoutId = fc.constantFrom(...PAYOUT_IDS);
/** How far back in what was seen. */
const back = fc.oneof(
  { weight: 5, arbitrary: fc.constant(1) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 3 }) },
);
const owner = fc.constantFrom('one', 'two');

function leaseAt({ leases }: Seen, index: number): Lease {
  return leases.at(-index) ?? { owner: 'nobody', epoch: 1 };
}

function attemptAt({ attempts }: Seen, index: number): SendAttempt {
  return attempts.at(-index) ?? { payoutId: 'p', attempt: 1, epoch: 1 };
}

const enqueue = payoutId.map(
  (id): Command =>
    async (rig) =>
      rig.enqueue(id),
);

const look: Command = async (rig, seen) => {
  const view = await rig.ledger.readSender();
  seen.views.push(view.lease);
  return view;
};

const acquire = fc.tuple(owner, back).map(([name, index]): Command => async (rig, seen) => {
  await look(rig, seen);
  const epoch = await rig.ledger.acquireLease(name, seen.views.at(-index));
  if (epoch !== undefined) seen.leases.push({ owner: name, epoch });
  return epoch;
});

const beat = back.map(
  (index): Command =>
    async (rig, seen) =>
      rig.ledger.beatLease(leaseAt(seen, index)),
);
const release = back.map(
  (index): Command =>
    async (rig, seen) =>
      rig.ledger.releaseLease(leaseAt(seen, index)),
);
const recover = back.map(
  (index): Command =>
    async (rig, seen) =>
      rig.ledger.recoverSends(leaseAt(seen, index), 'left'),
);

const begin = fc
  .tuple(payoutId, back, fc.constantFrom('attempt', 'sends', 'ledger'), offset)
  .map(([id, index, what, by]): Command => async (rig, seen) => {
    const lease = leaseAt(seen, index);
    const right = await nextBegin(rig.ledger, lease, id);
    const asked = {
      ...right,
      attempt: right.attempt + (what === 'attempt' ? by : 0),
      sends: right.sends + (what === 'sends' ? by : 0),
      ledgerId: what === 'ledger' && by !== 0 ? 'another' : right.ledgerId,
    };
    const reply = await rig.ledger.beginSend(asked);
    if (reply.kind === 'begun') seen.attempts.push({ payoutId: id, attempt: asked.attempt, epoch: lease.epoch });
    return reply;
  });

/** An attempt that was begun, or nearly one. */
const attempt = fc.tuple(back, offset, fc.boolean()).map(([index, by, shiftsEpoch]) => (seen: Seen): SendAttempt => {
  const begun = attemptAt(seen, index);
  return shiftsEpoch ? { ...begun, epoch: begun.epoch + by } : { ...begun, attempt: begun.attempt + by };
});

const revert = attempt.map(
  (pick): Command =>
    async (rig, seen) =>
      rig.ledger.revertSend(pick(seen), 'not sent'),
);

const result: fc.Arbitrary<SendResult> = fc.oneof(
  fc.constantFrom('hash-1', 'hash-2', 'hash-3').map((txhash) => ({ kind: 'accepted' as const, txhash })),
  fc.constantFrom('no funds', '').map((message) => ({ kind: 'rejected' as const, message })),
  fc.constant({ kind: 'unknown' as const, reason: 'no\nanswer' }),
);

const finish = fc.tuple(attempt, result, offset).map(
  ([pick, outcome, blocked]): Command =>
    async (rig, seen) =>
      rig.ledger.finishSend(pick(seen), outcome, blocked === 2 ? { ...RULE, blockedReason: 'blocked' } : RULE),
);

/** Only those that a person or the gateway's status answer makes; the sender's own have their commands. */
const CHANGES = TRANSITIONS.filter(({ from, to }) => from !== 'sending' && to !== 'sending');

const change = fc
  .tuple(payoutId, fc.constantFrom(...CHANGES), fc.constantFrom('hash-1', 'hash-2', undefined), offset)
  .map(([id, { from, to }, txhash, extra]): Command => async (rig) => {
    const plain: StateChange = { payoutId: id, from, to, by: 'ann', reason: 'looked\tit up' };
    const fields = extra === 0 ? {} : { fee: '0.1', message: 'said' };
    return rig.change({ ...plain, ...fields, ...(txhash === undefined ? {} : { txhash }) });
  });

const pause: Command = async (rig) => rig.pause('holiday');
const resume: Command = async (rig) => rig.resume();

const adoptSend = fc.tuple(attempt, payoutId, offset).map(([pick, id, by]): Command => async (rig, seen) => {
  const witnessed = pick(seen);
  return rig.adoptSend({ ...witnessed, payoutId: id, attempt: witnessed.attempt + by });
});

const adoptLedger = fc.nat(5).map(
  (epoch): Command =>
    async (rig) =>
      rig.adoptLedger({ epoch, sends: epoch }),
);

const commands = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: enqueue },
    { weight: 2, arbitrary: acquire },
    { weight: 1, arbitrary: fc.oneof(beat, beat, release) },
    { weight: 1, arbitrary: recover },
    { weight: 12, arbitrary: begin },
    { weight: 1, arbitrary: revert },
    { weight: 8, arbitrary: finish },
    { weight: 3, arbitrary: change },
    { weight: 1, arbitrary: fc.constantFrom(look, pause) },
    { weight: 3, arbitrary: fc.constant(resume) },
    { weight: 1, arbitrary: fc.oneof(adoptSend, adoptSend, adoptLedger) },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);

/** Without payouts and a holder most commands would only be refused. */
const start = fc.tuple(enqueue, enqueue, enqueue, acquire);

async function readAll(rig: LedgerRig): Promise<unknown> {
  return Promise.all([rig.ledger.readSender(), ...PAYOUT_IDS.map(async (id) => rig.ledger.readPayout(id))]);
}

function isBegun(reply: unknown): boolean {
  return typeof reply === 'object' && reply !== null && 'kind' in reply && reply.kind === 'begun';
}

describe('the ledger in Redis and the ledger in memory', () => {
  it('answer alike and hold the same after every one of many random commands', async () => {
    let begun = 0;
    await fc.assert(
      fc.asyncProperty(start, commands, async (first, more) => {
        const redis = makeRedisRig();
        try {
          const { ledgerId } = await redis.ledger.readSender();
          const memory = makeMemoryRig(() => ledgerId);
          await memory.ledger.readSender();
          const seenInRedis: Seen = { leases: [], views: [undefined], attempts: [] };
          const seenInMemory: Seen = { leases: [], views: [undefined], attempts: [] };
          for (const [index, step] of [...first, ...more].entries()) {
            redis.advance(index);
            memory.advance(index);
            const reply = await step(redis, seenInRedis);
            expect(reply).toEqual(await step(memory, seenInMemory));
            if (isBegun(reply)) begun += 1;
            expect(await readAll(redis)).toEqual(await readAll(memory));
          }
        } finally {
          await redis.close();
        }
      }),
      { numRuns: 200 },
    );
    // Commands that are nearly all refused would prove nothing.
    expect(begun).toBeGreaterThan(100);
  });
});
