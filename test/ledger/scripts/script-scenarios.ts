import { setTimeout as delay } from 'node:timers/promises';
import { ConflictError } from '../../../src/base/errors.js';
import type { RedisClient } from '../../../src/base/redis.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import { adoptLedger, adoptSends, putBackEnded, holdSendablePayouts } from '../../../src/ledger/adopt-ledger.js';
import { commandName, SCRIPT_NAMES, scriptSource, type ScriptName } from '../../../src/ledger/ledger-scripts.js';
import { countPayouts } from '../../../src/ledger/reads/state-events.js';
import { loadStatistics, saveStatistics } from '../../../src/ledger/reads/statistics.js';
import { publishJournalHead } from '../../../src/ledger/reads/workers.js';
import { reportDrop } from '../../../src/ledger/reads/reconciliation.js';
import { OrderLookUps } from '../../../src/ledger/order-look-ups.js';
import { readOldest, removeRead } from '../../../src/ledger/remove-payouts.js';
import { removePayouts } from '../support/remove-payouts.js';
import type { BeginSend, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { HOLD, JOURNAL, nextBegin, NO_BREAKER, OBJECTION, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import type { TestAccount } from '../support/test-account.js';
import { ACCEPTED, ANN, REJECTED, UNKNOWN } from '../support/use-account.js';

type Name = ScriptName | `${ScriptName}: ${string}`;

/** A call that runs a script, on a ledger that was made ready for it. */
export interface ScriptScenario {
  readonly name: Name;
  readonly script: ScriptName;
  /** Brings the account into the state in which the script is run. */
  prepare(account: TestAccount): Promise<unknown>;
  run(account: TestAccount, prepared: unknown): Promise<unknown>;
  /** What its caller does when it failed, where that is not the same call. */
  again?(account: TestAccount, prepared: unknown): Promise<unknown>;
}

type Step<Prepared> = (account: TestAccount, prepared: Prepared) => Promise<unknown>;

function scene<Prepared>(
  name: Name,
  prepare: (account: TestAccount) => Promise<Prepared>,
  run: Step<Prepared>,
  again?: Step<Prepared>,
): ScriptScenario {
  return { name, script: name.split(':')[0] as ScriptName, prepare, run, ...(again && { again }) };
}

const LEASE = { owner: 'one', epoch: 1 };
const TRIPS = { maxRejectionsInARow: 1, maxUnknownsInARow: 1 };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

const nothing = async (): Promise<void> => Promise.resolve();

/** Their date has passed. */
function queued(...payoutIds: string[]) {
  return async ({ ledger, clock }: TestAccount): Promise<void> => {
    const notBefore = '2020-01-01T00:00:00Z';
    for (const payoutId of payoutIds) await ledger.enqueue([aPayout(payoutId, { notBefore })]);
    clock.advance(1);
  };
}

/** Everything is ready for a send; what it would begin with. */
async function readyToBegin(account: TestAccount, payoutId = 'p'): Promise<BeginSend> {
  const { sender } = account;
  if ((await sender.readSender()).lease === undefined) await takeLease(sender, 'one');
  await queued(payoutId)(account);
  return nextBegin(sender, LEASE, payoutId);
}

async function begun(account: TestAccount, payoutId = 'p'): Promise<SendAttempt> {
  const asked = await readyToBegin(account, payoutId);
  await account.sender.beginSend(asked);
  account.clock.advance(1);
  return asked;
}

function finished(result: SentOutcome, ...others: string[]) {
  return async (account: TestAccount): Promise<SendAttempt> => {
    let attempt: SendAttempt | undefined;
    for (const payoutId of [...others, 'p']) {
      attempt = await begun(account, payoutId);
      await account.sender.finishSend(attempt, result, NO_BREAKER, 0);
      account.clock.advance(1);
    }
    return attempt as SendAttempt;
  };
}

const change = (from: PayoutState, to: PayoutState, more = {}) => {
  return async ({ ledger }: TestAccount): Promise<unknown> =>
    ledger.change({ payoutId: 'p', from, to, ...ANN, ...more });
};

const all = <First>(first: (account: TestAccount) => Promise<First>, ...more: Step<First>[]) => {
  return async (account: TestAccount): Promise<First> => {
    const prepared = await first(account);
    for (const step of more) await step(account, prepared);
    account.clock.advance(1);
    return prepared;
  };
};

const hold =
  (isTampering = false) =>
  async ({ sender }: TestAccount) =>
    sender.holdPayout('p', 0, { ...HOLD, isTampering });
const finishAs =
  (result: SentOutcome, rule = NO_BREAKER) =>
  async ({ sender }: TestAccount, attempt: SendAttempt) =>
    sender.finishSend(attempt, result, rule, 5_000);
const revert =
  (reason: string) =>
  async ({ sender }: TestAccount, attempt: SendAttempt) =>
    sender.revertSend(attempt, reason);
const readGroup = async ({ connection }: TestAccount) =>
  connection.run('read-group-events', { group: 'books', consumer: 'one', claimAfterMs: 30_000, limit: 10 });
const pause = async ({ ledger }: TestAccount) => ledger.pause('ann', 'holiday');
const holdsLease = async ({ sender }: TestAccount) => takeLease(sender, 'one');
const objects = async ({ sender }: TestAccount) => sender.object(OBJECTION);

/** Completes a payout of a batch. @returns a later time, wall clock, ms */
async function completeOld(account: TestAccount) {
  await account.ledger.enqueue([aPayout('p', { batch: 'october' })]);
  await finished(ACCEPTED)(account);
  await change('in_progress', 'completed')(account);
  account.clock.advance(10);
  return account.clock.wallNow();
}

async function cancelledAndKept(account: TestAccount) {
  await account.ledger.enqueue([aPayout('p', { batch: 'b', notBefore: '2099-01-01T00:00:00.000Z' })]);
  await change('queued', 'cancelled')(account);
  await account.sender.noteKept(1, ['p']);
  account.clock.advance(1);
}

async function readFirst(account: TestAccount) {
  await queued('p')(account);
  const [, , [first]] = (await readGroup(account)) as [string, number, [string, string[]][]];
  await delay(2);
  return first?.[0] ?? '';
}

/** Called again it is another adoption, with a number of its own. */
async function adopt({ connection }: TestAccount): Promise<unknown> {
  const journals = { read: [JOURNAL], givenUp: [OBJECTION.journalId] };
  const own = { token: 'adoption', inFlightMs: 0 };
  return adoptLedger(connection, { epoch: 3, sendCount: 9, acts: 0 }, own, journals, ANN);
}

const adoptions = [undefined, ACCEPTED].flatMap((outcome) => {
  const send = { payoutId: 'p', attempt: 3, token: 'adopted', request: REQUEST, inFlightMs: 0, outcome };
  const run = async ({ connection }: TestAccount) => adoptSends(connection, [send], ANN);
  const told = outcome?.kind ?? 'no outcome';
  return [
    scene(`adopt-send: a send of a payout that is gone: ${told}`, nothing, run),
    scene(`adopt-send: a send of a payout that is queued: ${told}`, queued('p'), run),
    scene(`adopt-send: another send of one in progress: ${told}`, finished({ ...ACCEPTED, gatewayId: 'i' }), run),
  ];
});

const cancelMany = (['cancelled', 'queued'] as const).map((to) =>
  scene(
    `change-payouts: many payouts are ${to} at once`,
    all(finished(REJECTED, 'q'), queued('r')),
    async ({ ledger }) => {
      const payouts = [{ payoutId: 'p', attempt: 1 }, { payoutId: 'q' }, { payoutId: 'r' }, { payoutId: 'nobody' }];
      return ledger.changeMany({ from: 'rejected', to, payouts, isOneAct: true, ...ANN });
    },
  ),
);

export const scriptScenarios: readonly ScriptScenario[] = [
  scene('enqueue-payouts: payouts are accepted, one of them in a batch', queued('there'), async ({ ledger }) =>
    ledger.enqueue([aPayout('p'), aPayout('there'), aPayout('q', { batch: 'october', reference: 'r' })]),
  ),
  scene(
    'enqueue-payouts: a payout that was adopted is enqueued again',
    async ({ connection }) =>
      adoptSends(connection, [{ payoutId: 'p', attempt: 1, token: 't', request: REQUEST, inFlightMs: 0 }], ANN),
    async ({ ledger }) => ledger.enqueue([aPayout('p', { reference: 'r' })]),
  ),
  scene(
    'begin-send',
    readyToBegin,
    async ({ sender }, asked) => sender.beginSend(asked),
    // What the sender does when it got no reply: put it back, and begin another attempt.
    async ({ sender, clock }, asked) => {
      clock.advance(1);
      await sender.revertSend(asked, 'no reply');
      clock.advance(1);
      await sender.beginSend(await nextBegin(sender, LEASE, 'p'));
    },
  ),
  scene('hold-payout: a payout is held', queued('p'), hold()),
  scene('hold-payout: an altered payout is held', queued('p'), hold(true)),
  scene('revert-send: an attempt is put back', begun, revert('no connection')),
  scene(
    'revert-send: an attempt is put back in front of a payout that came later',
    all(begun, queued('later')),
    revert('no connection'),
  ),
  scene('revert-send: the number of an attempt that never began is used up', readyToBegin, revert('no reply')),
  ...[ACCEPTED, REJECTED, UNKNOWN].map((result) =>
    scene(`finish-send: an outcome, which may pause the account: ${result.kind}`, begun, finishAs(result, TRIPS)),
  ),
  scene('finish-send: a late acceptance', finished(UNKNOWN), finishAs(ACCEPTED)),
  scene(
    'finish-send: the gatewayId of another payout',
    async (account) => {
      await finished(ACCEPTED)(account);
      return begun(account, 'other');
    },
    finishAs(ACCEPTED, TRIPS),
  ),
  scene(
    'finish-send: proof of a payment that was written off',
    all(finished(UNKNOWN), change('unknown', 'written_off')),
    finishAs(ACCEPTED),
  ),
  scene(
    'mark-sends-unknown',
    all(begun, async ({ sender }) => takeLease(sender, 'two')),
    async ({ sender }, attempt) => sender.markSendsUnknown({ owner: 'two', epoch: 2 }, [attempt], 'left', 5_000),
  ),
  scene('note-look-up', finished(UNKNOWN), async ({ connection, ledger }) => {
    const payout = await ledger.require('p');
    const at = payout.updatedAt;
    const lookUp = { answer: 'other_payment', message: 'amount', count: 1, since: at, at, attempt: 1 } as const;
    await new OrderLookUps(connection).note(payout, lookUp, false, 'amount');
  }),
  scene('finish-send: found', finished(UNKNOWN), async ({ connection }, attempt) =>
    new OrderLookUps(connection).recordFound(attempt, { gatewayId: 'h' }),
  ),
  scene(
    'remove-entries',
    all(begun, async ({ sender, redis, connection }) => {
      await redis.unlink(connection.keys.payout('p'));
      return takeLease(sender, 'two');
    }),
    async ({ sender }) => sender.removeSendingEntries({ owner: 'two', epoch: 2 }, ['p'], 'no record'),
  ),
  // Taken again as it stands by then, as the keeper does.
  scene('acquire-lease', begun, async ({ sender }) => {
    const view = await sender.readSender();
    const journal = { ...JOURNAL, journalId: 'j-two' };
    return view.lease?.owner === 'two' ? undefined : sender.acquireLease('two', view, journal, 0);
  }),
  scene('read-sender', nothing, async ({ sender }) => sender.readSender()),
  scene('renew-lease', holdsLease, async ({ sender }) => sender.renewLease(LEASE), nothing),
  scene('release-lease', holdsLease, async ({ sender }) => sender.releaseLease(LEASE)),

  scene('change-payouts: a payout is cancelled', queued('p'), change('queued', 'cancelled')),
  scene(
    'change-payouts: an unknown payout was sent',
    finished(UNKNOWN),
    change('unknown', 'in_progress', { gatewayId: 'i' }),
  ),
  scene('change-payouts: a rejected payout is retried', finished(REJECTED), change('rejected', 'queued')),
  scene('change-payouts: a held payout is released', all(queued('p'), hold()), change('held', 'queued')),
  ...cancelMany,
  scene('change-payouts: many unknown payouts were sent', finished(UNKNOWN, 'q'), async ({ ledger }) => {
    const payouts = ['p', 'q'].map((payoutId) => ({ payoutId, gatewayId: `hash-${payoutId}` }));
    return ledger.changeMany({ from: 'unknown', to: 'in_progress', payouts, isOneAct: true, ...ANN });
  }),
  scene(
    'change-payouts: a transaction completes',
    async (account) => {
      const other = await begun(account, 'other');
      await account.sender.finishSend(other, { kind: 'accepted', gatewayId: 'other' }, NO_BREAKER, 0);
      await account.ledger.change({ payoutId: 'other', from: 'in_progress', to: 'completed', ...ANN });
      return finished(ACCEPTED)(account);
    },
    change('in_progress', 'completed', { fee: '1' }),
  ),
  scene('add-approval', queued('p'), async ({ ledger }) => {
    const [at, expiresAt] = ['2030-01-01T09:00:00.000Z', '2030-01-02T09:00:00.000Z'];
    const said = {
      audience: 'test',
      payoutId: 'p',
      intent: 'ab'.repeat(32),
      decision: 'approve',
      reason: 'looked it up',
      by: 'ann',
    } as const;
    const payment = { paymentId: 7, amount: '1', symbol: '', addressTo: 'w' };
    return addApproval(ledger, { ...said, ...payment, at, expiresAt, signature: 's' });
  }),
  scene('add-receipt', finished(ACCEPTED), async ({ ledger }) => {
    const payout = await ledger.require('p');
    const receipt = { key: 'worker-1', audience: 'test', at: payout.updatedAt, signature: 's'.repeat(86) };
    return ledger.addReceipt(payout, receipt);
  }),
  scene('pause-account', nothing, pause),
  scene('resume-account', pause, async ({ ledger }) => ledger.resume('ann', 'over')),
  scene('raise-replicas', nothing, async ({ connection }) =>
    connection.run('raise-replicas', { count: 2, names: '10.0.0.1:1 10.0.0.2:1' }),
  ),
  scene(
    'lower-replicas',
    async ({ connection }) => connection.run('raise-replicas', { count: 2, names: '10.0.0.1:1 10.0.0.2:1' }),
    async ({ ledger }) => ledger.lowerReplicas({ count: 1, names: ['10.0.0.1:1'] }, ANN),
  ),
  scene('declare-new', nothing, async ({ ledger }) => ledger.declareNew(ANN)),
  scene('bind-ledger', finished(ACCEPTED), async ({ ledger }) => ledger.bind('https://other.example#1', ANN)),
  scene('bind-ledger: a payout is in progress', finished(ACCEPTED), async ({ ledger }) =>
    ledger.bind('https://other.example#1', ANN, { without: ['unknown', 'in_progress'] }).catch((error: unknown) => {
      if (!(error instanceof ConflictError)) throw error;
    }),
  ),
  scene('publish-event: a drop of the balance', nothing, async ({ connection }) => reportDrop(connection, 'missing')),
  scene('publish-event: the head of a journal', nothing, async ({ connection }) =>
    publishJournalHead(connection, { journalId: 'abcdef012345', hash: 'a'.repeat(64), sends: 7 }),
  ),
  scene('object-to-ledger', nothing, objects),
  scene('find-forgotten-sends', finished(ACCEPTED), async ({ sender }, attempt) =>
    sender.findForgottenSends([attempt, { ...attempt, token: 'other' }]),
  ),
  ...adoptions,
  scene('adopt-ledger', objects, adopt, adopt),
  scene('keep-acts', all(queued('p'), change('queued', 'cancelled')), async ({ sender }) => sender.noteKept(1, ['p'])),
  ...(['p', 'gone'] as const).map((payoutId) =>
    scene(`put-back-ended: ${payoutId}`, queued('p'), async ({ connection }) => {
      const ended = { payoutId, state: 'cancelled', at: 5, ...ANN, request: REQUEST } as const;
      return putBackEnded(connection, [ended], ANN);
    }),
  ),
  scene('mark-unsent-unknown', queued('p', 'q'), async ({ connection }) => holdSendablePayouts(connection, ANN, 0)),
  scene('undo-cancel', cancelledAndKept, async ({ connection: { run, keys }, clock }) =>
    run('undo-cancel', { at: clock.wallNow(), by: 'ann', reason: 'why', oneAct: 0, batch: 'b', since: 0 }, [
      keys.payout('p'),
      keys.payout('p.again'),
      keys.removedBucket('p.again'),
      keys.batch('b'),
    ]),
  ),
  scene('comment-payout', queued('p'), async ({ ledger }) => ledger.comment('p', { by: 'ann', text: 'I am on it' })),
  scene('remove-payouts: old payouts are removed', completeOld, async ({ connection }, before) =>
    removePayouts(connection, 'completed', before, 10),
  ),
  scene(
    'remove-payouts: old payouts are removed as they were archived',
    async (account) => {
      const before = await completeOld(account);
      return { before, old: await readOldest(account.connection, 'completed', 10) };
    },
    async ({ connection }, removal) => removeRead(connection, { ...removal, state: 'completed', onlyUnchanged: true }),
  ),
  scene('trim-events', queued('p', 'q', 'r'), async ({ connection }) =>
    connection.run('trim-events', { keep: 3, limit: 100 }),
  ),
  scene('read-group-events', queued('p'), readGroup),
  scene('ack-group-event', readFirst, async ({ connection }, eventId) =>
    connection.run('ack-group-event', { group: 'books', consumer: 'one', eventId }),
  ),
  scene('set-group-idle', readFirst, async ({ connection }) =>
    connection.run('set-group-idle', { group: 'books', consumer: 'one', idleMs: 0, limit: 10 }),
  ),
  scene('count-payouts', finished(UNKNOWN), async ({ connection }) => countPayouts(connection)),
  scene(
    'write-statistics',
    async ({ connection }) =>
      saveStatistics(
        connection,
        { revision: '', statistics: {}, batches: {} },
        { statistics: { old: '1', position: '"1-0"' }, batches: { '': '"1-0"', b: '{}' } },
      ),
    async ({ connection }) => {
      const changed = { statistics: { position: '"2-0"' }, batches: { '': '"2-0"' } };
      return saveStatistics(connection, await loadStatistics(connection), changed);
    },
  ),
];

/** Stands in front of a script, in the place of `redis`: sees every command. */
const WATCHED = `
local real = redis
local calls, is_interrupted = 0, false
local declared = {}
for _, key in ipairs(KEYS) do declared[key] = true end
-- The place of the key among a command's words; most have it first.
local PLACE = { TIME = 0, XINFO = 3, XGROUP = 3, XREADGROUP = 8 }
local function watched(call)
  return function(...)
    local words = { ... }
    local place = PLACE[string.upper(words[1])] or 2
    if place > 0 and not declared[words[place]] then error('undeclared key ' .. tostring(words[place])) end
    if calls > 0 and calls == INTERRUPTED_AFTER and not is_interrupted then
      is_interrupted = true
      error('interrupted')
    end
    calls = calls + 1
    return call(...)
  end
end
local redis = { call = watched(real.call), pcall = watched(real.pcall), sha1hex = real.sha1hex }
`;

/** A script that fails at a key that it was not given, and ends after so many commands; 0: after all. */
export const watchedScript = (source: string, after = 0) =>
  `${WATCHED.replace('INTERRUPTED_AFTER', String(after))}\n${source}`;

/** Watches every script of a connection, and lets one of them end after so many commands. */
export function instrumentScripts(redis: RedisClient, interrupted?: { name: ScriptName; after: number }) {
  for (const name of SCRIPT_NAMES) {
    const after = interrupted?.name === name ? interrupted.after : 0;
    redis.defineCommand(commandName(name), { lua: watchedScript(scriptSource(name), after) });
  }
}
