import { isDeepStrictEqual } from 'node:util';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import fc from 'fast-check';
import type { BreakerRule, Lease, SendAttempt, SenderView } from '../../../src/ledger/sender-ledger.js';
import { TRANSITIONS } from '../../../src/ledger/states.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { HOLD, JOURNAL, nextBegin, OBJECTION, type LedgerRig } from '../contract/ledger-rig.js';
import { makeRedisRig } from './redis-rig.js';

/**
 * Random sequences of commands, given to the ledger in Redis and to the one in memory, which is its model: after every
 * command both have given the same reply and hold the same.
 */

const PAYOUT_IDS = ['p', 'q', 'r', 's', 't'];
const RULE: BreakerRule = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

/** What a command may refer to: what was seen on the way there. The newest is last. */
class Seen {
  readonly leases: Lease[] = [];
  readonly views: SenderView[] = [];
  readonly attempts: SendAttempt[] = [];
  begun = 0;
}

/** A ledger, and what was seen of it. */
interface Side {
  readonly rig: LedgerRig;
  readonly seen: Seen;
}

/** One step, done to both ledgers, after which they must have replied alike and hold the same. */
class Command implements fc.AsyncCommand<Side, Side, true> {
  readonly #name: string;
  readonly #step: (side: Side) => Promise<unknown>;

  constructor(name: string, step: (side: Side) => Promise<unknown>) {
    this.#name = name;
    this.#step = step;
  }

  async check(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async run(memory: Side, redis: Side): Promise<void> {
    for (const { rig } of [memory, redis]) rig.advance(1);
    const expected = await this.#step(memory);
    this.#expectSame('the reply', await this.#step(redis), expected);
    this.#expectSame('the ledger', await readAll(redis), await readAll(memory));
  }

  #expectSame(what: string, inRedis: unknown, inMemory: unknown): void {
    const [found, expected] = [toPlain(inRedis), toPlain(inMemory)];
    if (isDeepStrictEqual(found, expected)) return;
    const lines = [`in Redis:  ${JSON.stringify(found)}`, `in memory: ${JSON.stringify(expected)}`];
    throw new Error(`after ${this.#name}, ${what} differs\n${lines.join('\n')}`);
  }

  toString(): string {
    return this.#name;
  }
}

async function readAll({ rig }: Side): Promise<unknown> {
  return Promise.all([rig.ledger.readSender(), ...PAYOUT_IDS.map(async (id) => rig.ledger.readPayout(id))]);
}

/** A field that is undefined is as good as none. */
function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}

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
  return attempts.at(-index) ?? { payoutId: 'p', attempt: 1, token: 'none' };
}

const enqueue = payoutId.map((id) => new Command(`enqueue ${id}`, async ({ rig }) => rig.enqueue(id)));

async function look({ rig, seen }: Side): Promise<unknown> {
  const view = await rig.ledger.readSender();
  seen.views.push(view);
  return view;
}

const acquire = fc.tuple(owner, back).map(
  ([name, index]) =>
    new Command(`acquire as ${name}, view ${index} back`, async (side) => {
      const view = (await look(side)) as SenderView;
      const epoch = await side.rig.ledger.acquireLease(name, side.seen.views.at(-index) ?? view, JOURNAL, 0);
      if (epoch !== undefined) side.seen.leases.push({ owner: name, epoch });
      return epoch;
    }),
);

const renewLease = back.map(
  (index) =>
    new Command(`renew lease ${index} back`, async ({ rig, seen }) => rig.ledger.renewLease(leaseAt(seen, index))),
);
const release = back.map(
  (index) =>
    new Command(`release lease ${index} back`, async ({ rig, seen }) => rig.ledger.releaseLease(leaseAt(seen, index))),
);
const recover = back.map(
  (index) =>
    new Command(`recover with lease ${index} back`, async ({ rig, seen }) => {
      const sending = await rig.ledger.readSending();
      return [sending, await rig.ledger.markSendsUnknown(leaseAt(seen, index), sending, 'left', 0)];
    }),
);

const begin = fc
  .tuple(payoutId, back, fc.constantFrom('attempt', 'sends', 'last', 'ledger'), offset)
  .map(([id, index, what, by]) => {
    const wrong = by === 0 ? '' : `, ${what} off by ${by}`;
    return new Command(`begin ${id} with lease ${index} back${wrong}`, async ({ rig, seen }) => {
      const lease = leaseAt(seen, index);
      const right = await nextBegin(rig.ledger, lease, id);
      const asked = {
        ...right,
        attempt: right.attempt + (what === 'attempt' ? by : 0),
        sendCount: right.sendCount + (what === 'sends' ? by : 0),
        last: what === 'last' && by !== 0 ? 'another' : right.last,
        ledgerId: what === 'ledger' && by !== 0 ? 'another' : right.ledgerId,
      };
      const reply = await rig.ledger.beginSend(asked);
      if (reply.kind !== 'begun') return reply;
      seen.attempts.push({ payoutId: id, attempt: asked.attempt, token: asked.token });
      seen.begun += 1;
      return reply;
    });
  });

interface PickedAttempt {
  readonly name: string;
  readonly of: (seen: Seen) => SendAttempt;
}

/** An attempt that was begun, or nearly one. */
const attempt = fc.tuple(back, offset, fc.boolean()).map(([index, by, isToken]): PickedAttempt => {
  const wrong = by === 0 ? '' : isToken ? ', another token' : `, number off by ${by}`;
  return {
    name: `attempt ${index} back${wrong}`,
    of: (seen) => {
      const begun = attemptAt(seen, index);
      if (by === 0) return begun;
      return isToken ? { ...begun, token: `another-${by}` } : { ...begun, attempt: begun.attempt + by };
    },
  };
});

const revert = attempt.map(
  ({ name, of }) => new Command(`revert ${name}`, async ({ rig, seen }) => rig.ledger.revertSend(of(seen), 'not sent')),
);

/** One transaction. */
const SPELLINGS = ['ab'.repeat(32), `0x${'AB'.repeat(32)}`];

const result: fc.Arbitrary<SentOutcome> = fc.oneof(
  fc.constantFrom('hash-1', ...SPELLINGS).map((txhash) => ({ kind: 'accepted' as const, txhash })),
  fc.constantFrom('no funds', '').map((message) => ({ kind: 'rejected' as const, message })),
  fc.constant({ kind: 'unknown' as const, reason: 'no\nresponse' }),
);

const finish = fc.tuple(attempt, result, offset).map(([{ name, of }, outcome, blocked]) => {
  const rule = blocked === 2 ? { ...RULE, blockedReason: 'blocked' } : RULE;
  return new Command(`finish ${name} as ${JSON.stringify({ ...outcome, ...rule })}`, async ({ rig, seen }) =>
    rig.ledger.finishSend(of(seen), outcome, rule, 0),
  );
});

/** Only those that an operator or the gateway's status response makes; the sender's own have their commands. */
const CHANGES = TRANSITIONS.filter(({ from, to }) => from !== 'sending' && to !== 'sending');

const change = fc
  .tuple(payoutId, fc.constantFrom(...CHANGES), fc.constantFrom('hash-1', ...SPELLINGS, undefined), offset)
  .map(([id, { from, to }, txhash, extra]) => {
    const plain = { payoutId: id, from, to, by: 'ann', reason: 'looked\tit up' };
    const fields = extra === 0 ? {} : extra === 1 ? { fee: '0.1', message: 'said' } : { attempt: 1 };
    const asked = { ...plain, ...fields, ...(txhash === undefined ? {} : { txhash }) };
    return new Command(`change ${JSON.stringify(asked)}`, async ({ rig }) => rig.change(asked));
  });

const txhash = fc.constantFrom('hash-1', 'hash-2', ...SPELLINGS, undefined);
const oneOfMany = fc.record({
  payoutId,
  txhash,
  attempt: fc.constantFrom(undefined, undefined, 1),
  act: fc.constantFrom('', 'a'),
});

const changeMany = fc
  .tuple(
    fc.uniqueArray(oneOfMany, { selector: ({ payoutId: id }) => id, minLength: 2, maxLength: PAYOUT_IDS.length }),
    fc.constantFrom(...CHANGES),
    fc.boolean(),
  )
  .map(([chosen, { from, to }, isOneAct]) => {
    const payouts = chosen.map(({ payoutId: id, txhash: hash, attempt: number, act }) => ({
      payoutId: id,
      ...(hash === undefined ? {} : { txhash: hash }),
      ...(number === undefined ? {} : { attempt: number }),
      ...(act === '' ? {} : { act }),
    }));
    const asked = { from, to, payouts, isOneAct, by: 'ann', reason: 'looked\tit up' };
    return new Command(`change many ${JSON.stringify(asked)}`, async ({ rig }) => rig.changeMany(asked));
  });

const pause = new Command('pause', async ({ rig }) => rig.pause('holiday'));
const resume = new Command('resume', async ({ rig }) => rig.resume());

const journaledOutcome = fc.oneof(result, result).map((outcome) => (outcome.kind === 'unknown' ? undefined : outcome));

const adoptSend = fc.tuple(attempt, payoutId, offset, journaledOutcome).map(
  ([{ name, of }, id, by, outcome]) =>
    new Command(`adopt ${name} as of ${id}, number off by ${by}, ${JSON.stringify(outcome)}`, async ({ rig, seen }) => {
      const journaled = of(seen);
      return rig.adoptSend({ ...journaled, payoutId: id, attempt: Math.max(1, journaled.attempt + by) }, outcome);
    }),
);

const object = new Command('object', async ({ rig }) => rig.ledger.object(OBJECTION));
const hold = new Command('hold what is queued', async ({ rig }) => rig.holdSendable());

const holdPayout = fc.tuple(payoutId, offset, fc.boolean()).map(
  ([id, by, isTampering]) =>
    new Command(`hold ${id}, attempt off by ${by}`, async ({ rig }) => {
      const number = ((await rig.ledger.readPayout(id))?.attempt ?? 0) + by;
      return rig.ledger.holdPayout(id, number, { ...HOLD, isTampering });
    }),
);

const adoptLedger = fc.tuple(fc.nat(5), fc.constantFrom('read', 'given up', 'neither')).map(
  ([epoch, objector]) =>
    new Command(`adopt the ledger at ${epoch}, the objector's journal ${objector}`, async ({ rig }) => {
      const { journalId } = OBJECTION;
      const read = objector === 'read' ? [JOURNAL, { ...JOURNAL, journalId }] : [JOURNAL];
      return rig.adoptLedger(
        { epoch, sendCount: epoch },
        { read, givenUp: objector === 'given up' ? [journalId] : [] },
      );
    }),
);

/** A weight is the number of times that an arbitrary is named, which is how `fc.commands` draws. */
function times(weight: number, arbitrary: fc.Arbitrary<Command>): fc.Arbitrary<Command>[] {
  return Array.from({ length: weight }, () => arbitrary);
}

/** @param replayPath - as a failure prints it beside its commands; which of them were run is part of what is repeated */
const commands = (replayPath: string | undefined): fc.Arbitrary<Iterable<fc.AsyncCommand<Side, Side, true>>> =>
  fc.commands<Side, Side, true>(
    [
      ...times(3, enqueue),
      ...times(2, acquire),
      fc.oneof(renewLease, renewLease, release),
      recover,
      ...times(12, begin),
      revert,
      ...times(8, finish),
      ...times(3, change),
      ...times(2, changeMany),
      holdPayout,
      fc.constantFrom(new Command('look', look), pause),
      ...times(3, fc.constant(resume)),
      fc.oneof(adoptSend, adoptSend, adoptLedger, adoptLedger, fc.constantFrom(object, object, hold)),
    ],
    { maxCommands: 40, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
  );

/** Without payouts and a holder most commands would only be refused. */
const start = fc.tuple(enqueue, enqueue, enqueue, acquire);

/** What the sequences came to: commands that are nearly all refused would prove nothing. */
export interface SequenceCounts {
  begun: number;
}

/** One sequence a run. Where one fails, the commands that are left of it are a sequence that fails by itself. */
export function ledgerSequences(counts: SequenceCounts, replayPath?: string): fc.IAsyncProperty<[unknown, unknown]> {
  return fc.asyncProperty(start, commands(replayPath), async (first, more) => {
    const redis = makeRedisRig();
    try {
      const { ledgerId } = await redis.ledger.readSender();
      const memory = makeWorldRig(() => ledgerId);
      await memory.ledger.readSender();
      const sides = { model: { rig: memory, seen: new Seen() }, real: { rig: redis, seen: new Seen() } };
      for (const command of first) await command.run(sides.model, sides.real);
      await fc.asyncModelRun(() => sides, more);
      counts.begun += sides.real.seen.begun;
    } finally {
      await redis.close();
    }
  });
}
