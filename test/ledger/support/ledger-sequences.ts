import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { Lease, SendAttempt, SenderView } from '../../../src/ledger/sender-ledger.js';
import { TRANSITIONS } from '../../../src/ledger/states.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { HOLD, JOURNAL, nextBegin, OBJECTION, type LedgerRig } from '../contract/ledger-rig.js';
import { makeRedisRig } from './redis-rig.js';

/**
 * Random sequences of commands, given to the ledger in Redis and to the one in memory, which is its model: after every
 * command both have given the same reply and hold the same.
 */

const PAYOUT_IDS = ['p', 'q', 'r', 's', 't'];
const RULE = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

/** A ledger, and what was seen of it on the way, to which a command may refer. The newest is last. */
class Side {
  readonly leases: Lease[] = [];
  readonly views: SenderView[] = [];
  readonly attempts: SendAttempt[] = [];

  readonly rig: LedgerRig;

  constructor(rig: LedgerRig) {
    this.rig = rig;
  }

  get ledger() {
    return this.rig.ledger;
  }
  leaseAt(back: number): Lease {
    return this.leases.at(-back) ?? { owner: 'nobody', epoch: 1 };
  }
  attemptAt(back: number): SendAttempt {
    return this.attempts.at(-back) ?? { payoutId: 'p', attempt: 1, token: 'none' };
  }
  async readAll(): Promise<unknown> {
    return Promise.all([this.ledger.readSender(), ...PAYOUT_IDS.map(async (id) => this.ledger.readPayout(id))]);
  }
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
    this.#expectSame('the ledger', await redis.readAll(), await memory.readAll());
  }

  #expectSame(what: string, inRedis: unknown, inMemory: unknown): void {
    // A field that is undefined is as good as none.
    const [found, expected] = [inRedis, inMemory].map((value) => JSON.stringify(value ?? null));
    if (isDeepStrictEqual(JSON.parse(found ?? ''), JSON.parse(expected ?? ''))) return;
    throw new Error(`after ${this.#name}, ${what} differs\nin Redis:  ${found}\nin memory: ${expected}`);
  }

  toString(): string {
    return this.#name;
  }
}

/** A command of something that is drawn, which names it. */
function command<Drawn>(
  name: string,
  drawn: fc.Arbitrary<Drawn>,
  step: (side: Side, drawn: Drawn) => Promise<unknown>,
) {
  return drawn.map((value) => new Command(`${name} ${JSON.stringify(value)}`, async (side) => step(side, value)));
}

/** Mostly 0, the right value; else something near it. */
const offset = fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(-1, 1, 2) });
const payoutId = fc.constantFrom(...PAYOUT_IDS);
/** How far back in what was seen. */
const back = fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(2, 3) });

/** One transaction in two spellings, and another. */
const HASHES = ['hash-1', 'ab'.repeat(32), `0x${'AB'.repeat(32)}`];
const txhash = fc.constantFrom(...HASHES, undefined);
const result: fc.Arbitrary<SentOutcome> = fc.oneof(
  fc.constantFrom(...HASHES).map((hash) => ({ kind: 'accepted' as const, txhash: hash })),
  fc.constantFrom('no funds', '').map((message) => ({ kind: 'rejected' as const, message })),
  fc.constant({ kind: 'unknown' as const, reason: 'no\nresponse' }),
);

/** An attempt that was begun, or nearly one. */
const picked = fc.record({ back, by: offset, isToken: fc.boolean() });
function pick(side: Side, { back: index, by, isToken }: { back: number; by: number; isToken: boolean }): SendAttempt {
  const begun = side.attemptAt(index);
  if (by === 0) return begun;
  return isToken ? { ...begun, token: `another-${by}` } : { ...begun, attempt: begun.attempt + by };
}

async function look(side: Side): Promise<SenderView> {
  const view = await side.ledger.readSender();
  side.views.push(view);
  return view;
}

const enqueue = command('enqueue', payoutId, async ({ rig }, id) => rig.enqueue(id));
const acquire = command(
  'acquire',
  fc.record({ owner: fc.constantFrom('one', 'two'), index: back }),
  async (side, { owner, index }) => {
    const view = await look(side);
    const epoch = await side.ledger.acquireLease(owner, side.views.at(-index) ?? view, JOURNAL, 0);
    if (epoch !== undefined) side.leases.push({ owner, epoch });
    return epoch;
  },
);
const renew = command('renew lease', back, async (side, index) => side.ledger.renewLease(side.leaseAt(index)));
const release = command('release lease', back, async (side, index) => side.ledger.releaseLease(side.leaseAt(index)));
const recover = command('recover', back, async (side, index) => {
  const sending = await side.ledger.readSending();
  return [sending, await side.ledger.markSendsUnknown(side.leaseAt(index), sending, 'left', 0)];
});

const begin = command(
  'begin',
  fc.record({
    id: payoutId,
    index: back,
    what: fc.constantFrom('attempt', 'sendCount', 'last', 'ledgerId'),
    by: offset,
  }),
  async (side, { id, index, what, by }) => {
    const right = await nextBegin(side.ledger, side.leaseAt(index), id);
    const wrong = what === 'attempt' || what === 'sendCount' ? right[what] + by : 'another';
    const asked = by === 0 ? right : { ...right, [what]: wrong };
    const reply = await side.ledger.beginSend(asked);
    if (reply.kind === 'begun') side.attempts.push({ payoutId: id, attempt: asked.attempt, token: asked.token });
    return reply;
  },
);
const revert = command('revert', picked, async (side, given) => side.ledger.revertSend(pick(side, given), 'not sent'));
const finish = command(
  'finish',
  fc.record({ given: picked, outcome: result, blocked: offset }),
  async (side, { given, outcome, blocked }) =>
    side.ledger.finishSend(pick(side, given), outcome, blocked === 2 ? { ...RULE, blockedReason: 'blocked' } : RULE, 0),
);

/** Only those that an operator or the gateway's status response makes; the sender's own have their commands. */
const CHANGES = TRANSITIONS.filter(({ from, to }) => from !== 'sending' && to !== 'sending');
const transition = fc.constantFrom(...CHANGES).map(({ from, to }) => ({ from, to }));
const ANN = { by: 'ann', reason: 'looked\tit up' };
const given = <Value>(name: string, value: Value | undefined) => (value === undefined ? {} : { [name]: value });

const change = command(
  'change',
  fc.record({ payoutId, way: transition, hash: txhash, extra: offset }),
  async ({ rig }, { payoutId: id, way, hash, extra }) => {
    const fields = extra === 0 ? {} : extra === 1 ? { fee: '0.1', message: 'said' } : { attempt: 1 };
    return rig.change({ payoutId: id, ...way, ...ANN, ...fields, ...given('txhash', hash) });
  },
);
const oneOfMany = fc
  .tuple(payoutId, txhash, fc.constantFrom(undefined, undefined, 1), fc.constantFrom(undefined, 'a'))
  .map(([id, hash, attempt, act]) => {
    return { payoutId: id, ...given('txhash', hash), ...given('attempt', attempt), ...given('act', act) };
  });
const changeMany = command(
  'change many',
  fc.record({
    payouts: fc.uniqueArray(oneOfMany, { selector: ({ payoutId: id }) => id, minLength: 2, maxLength: 5 }),
    way: transition,
    isOneAct: fc.boolean(),
  }),
  async ({ rig }, { payouts, way, isOneAct }) => rig.changeMany({ ...way, payouts, isOneAct, ...ANN }),
);

const adoptSend = command(
  'adopt send',
  fc.record({ of: picked, id: payoutId, by: offset, outcome: result }),
  async (side, { of, id, by, outcome }) => {
    const journaled = pick(side, of);
    const send = { ...journaled, payoutId: id, attempt: Math.max(1, journaled.attempt + by) };
    return side.rig.adoptSend(send, outcome.kind === 'unknown' ? undefined : outcome);
  },
);
const adoptLedger = command(
  'adopt the ledger',
  fc.record({ epoch: fc.nat(5), objector: fc.constantFrom('read', 'given up', 'neither') }),
  async ({ rig }, { epoch, objector }) => {
    const { journalId } = OBJECTION;
    const read = objector === 'read' ? [JOURNAL, { ...JOURNAL, journalId }] : [JOURNAL];
    const givenUp = objector === 'given up' ? [journalId] : [];
    return rig.adoptLedger({ epoch, sendCount: epoch }, { read, givenUp });
  },
);
const holdPayout = command(
  'hold',
  fc.record({ id: payoutId, by: offset, isTampering: fc.boolean() }),
  async ({ ledger }, { id, by, isTampering }) =>
    ledger.holdPayout(id, ((await ledger.readPayout(id))?.attempt ?? 0) + by, { ...HOLD, isTampering }),
);
const pause = new Command('pause', async ({ rig }) => rig.pause('holiday'));
const resume = fc.constant(new Command('resume', async ({ rig }) => rig.resume()));
const object = new Command('object', async ({ ledger }) => ledger.object(OBJECTION));
const hold = new Command('hold what is queued', async ({ rig }) => rig.holdSendable());

/** A weight is the number of times that an arbitrary is named, which is how `fc.commands` draws. */
const times = (weight: number, arbitrary: fc.Arbitrary<Command>) => Array.from({ length: weight }, () => arbitrary);

/** @param replayPath - as a failure prints it beside its commands; which of them were run is part of what is repeated */
const commands = (replayPath: string | undefined): fc.Arbitrary<Iterable<fc.AsyncCommand<Side, Side, true>>> =>
  fc.commands<Side, Side, true>(
    [
      ...[...times(3, enqueue), ...times(2, acquire), fc.oneof(renew, renew, release), recover],
      ...[...times(12, begin), revert, ...times(8, finish), ...times(3, change), ...times(2, changeMany), holdPayout],
      ...[fc.constantFrom(new Command('look', look), pause), ...times(3, resume)],
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
      const sides = { model: new Side(makeWorldRig(() => ledgerId)), real: new Side(redis) };
      await sides.model.ledger.readSender();
      for (const each of first) await each.run(sides.model, sides.real);
      await fc.asyncModelRun(() => sides, more);
      counts.begun += sides.real.attempts.length;
    } finally {
      await redis.close();
    }
  });
}
