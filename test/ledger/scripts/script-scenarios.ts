import { setTimeout as delay } from 'node:timers/promises';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../../src/ledger/adopt-ledger.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { PayoutChanges } from '../../../src/ledger/payout-ledger.js';
import { countPayouts } from '../../../src/ledger/reads/state-events.js';
import { loadStatistics, saveStatistics } from '../../../src/ledger/reads/statistics.js';
import { publishJournalHead } from '../../../src/ledger/reads/workers.js';
import { readOldest, removePayouts, removeRead } from '../../../src/ledger/remove-payouts.js';
import { reportDrop } from '../../../src/ledger/reads/reconciliation.js';
import { HOLD, JOURNAL, nextBegin, NO_BREAKER, OBJECTION, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import {
  ACCEPTED,
  ANN,
  begun,
  change,
  DOUBT,
  finished,
  LEASE,
  nothing,
  queued,
  readyToBegin,
  REJECTED,
  REQUEST,
  scene,
  TRIPS,
  UNKNOWN,
  type ScriptScenario,
  type Stage,
} from './scenario-stage.js';

/** Scripts that accept payouts, send them and hold the lease. */
const SENDS: readonly ScriptScenario[] = [
  scene('enqueue-payouts', 'payouts are accepted, one of them in a batch', queued('there'), async ({ account }) =>
    account.ledger.enqueue([aPayout('p'), aPayout('there'), aPayout('q', { batch: 'october', reference: 'r' })]),
  ),
  scene(
    'enqueue-payouts',
    'a payout that was adopted is enqueued again',
    async ({ account }) =>
      adoptSends(account.connection, [{ payoutId: 'p', attempt: 1, token: 't', request: REQUEST }], DOUBT),
    async ({ account }) => account.ledger.enqueue([aPayout('p', { reference: 'r' })]),
  ),
  scene(
    'begin-send',
    'a send begins',
    readyToBegin,
    async ({ sender }, asked) => sender.beginSend(asked),
    // What the sender does when it got no reply: put it back, and begin another attempt.
    async ({ sender, account }, asked) => {
      account.clock.advance(1);
      await sender.revertSend(asked, 'no reply');
      account.clock.advance(1);
      await sender.beginSend(await nextBegin(sender, LEASE, 'p'));
    },
  ),
  ...[false, true].map((isTampering) =>
    scene('hold-payout', `a payout is held, altered: ${isTampering}`, queued('p'), async ({ sender }) =>
      sender.holdPayout('p', 0, { ...HOLD, isTampering }),
    ),
  ),
  scene('revert-send', 'an attempt is put back', begun, async ({ sender }, attempt) =>
    sender.revertSend(attempt, 'no connection'),
  ),
  scene(
    'revert-send',
    'the number of an attempt that never began is used up',
    readyToBegin,
    async ({ sender }, asked) => sender.revertSend(asked, 'no reply'),
  ),
  ...[ACCEPTED, REJECTED, UNKNOWN].map((result) =>
    scene(
      'finish-send',
      `an outcome is recorded, and may pause the account: ${result.kind}`,
      begun,
      async (stage, sent) => stage.sender.finishSend(sent, result, TRIPS, 5_000),
    ),
  ),
  scene('finish-send', 'a late acceptance', finished(UNKNOWN), async ({ sender }, attempt) =>
    sender.finishSend(attempt, ACCEPTED, NO_BREAKER, 0),
  ),
  scene(
    'finish-send',
    'an acceptance with the txhash of another payout',
    async (stage) => {
      await finished(ACCEPTED, 'other')(stage);
      return begun(stage);
    },
    async ({ sender }, attempt) => sender.finishSend(attempt, ACCEPTED, TRIPS, 0),
  ),
  scene(
    'finish-send',
    'proof of a payment that was written off',
    async (stage) => {
      const attempt = await finished(UNKNOWN)(stage);
      await change('unknown', 'cancelled')(stage);
      stage.account.clock.advance(1);
      return attempt;
    },
    async ({ sender }, attempt) => sender.finishSend(attempt, ACCEPTED, NO_BREAKER, 0),
  ),
  scene(
    'mark-sends-unknown',
    'attempts that an ended sender left become unknown',
    async (stage) => ({ attempt: await begun(stage), lease: await takeLease(stage.sender, 'two') }),
    async ({ sender }, { attempt, lease }) => sender.markSendsUnknown(lease, [attempt], 'left', 5_000),
  ),
  // Taken again as it stands by then, as the keeper does.
  scene('acquire-lease', 'the lease is taken', begun, async ({ sender }) => {
    const view = await sender.readSender();
    const journal = { ...JOURNAL, journalId: 'j-two' };
    return view.lease?.owner === 'two' ? undefined : sender.acquireLease('two', view, journal, 0);
  }),
  scene('read-sender', 'the sender is shown', nothing, async ({ sender }) => sender.readSender()),
  scene(
    'renew-lease',
    'a heartbeat',
    async ({ sender }) => takeLease(sender, 'one'),
    async ({ sender }) => sender.renewLease(LEASE),
    nothing,
  ),
  scene(
    'release-lease',
    'the lease is given back',
    async ({ sender }) => takeLease(sender, 'one'),
    async ({ sender }) => sender.releaseLease(LEASE),
  ),
];

const APPROVAL: SignedApproval = {
  ...{ payoutId: 'p', intent: 'ab'.repeat(32), decision: 'approve', by: 'ann', signature: 's' },
  ...{ at: '2030-01-01T09:00:00.000Z', expiresAt: '2030-01-02T09:00:00.000Z' },
};

const changeMany =
  (changes: Pick<PayoutChanges, 'from' | 'to' | 'payouts'>) =>
  async ({ account }: Stage) =>
    account.ledger.changeMany({ ...changes, isOneAct: true, ...ANN });

/** Completes a payout of a batch. @returns a later time, wall clock, ms */
async function completeOld(stage: Stage): Promise<number> {
  await stage.account.ledger.enqueue([aPayout('p', { batch: 'october' })]);
  await finished(ACCEPTED)(stage);
  await change('in_progress', 'completed')(stage);
  stage.account.clock.advance(10);
  return stage.account.clock.wallNow();
}

const readGroup = async ({ account }: Stage): Promise<unknown> =>
  account.connection.run('read-group-events', ['books', 'one', 30_000, 10]);

async function readFirst(stage: Stage): Promise<string> {
  await queued('p')(stage);
  const [, , [first]] = (await readGroup(stage)) as [string, number, [string, string[]][]];
  await delay(2);
  return first?.[0] ?? '';
}

/** Scripts that change payouts and the account by an operator's word, adopt a ledger, and read events. */
const ACTS: readonly ScriptScenario[] = [
  scene('change-payouts', 'a payout is cancelled', queued('p'), change('queued', 'cancelled')),
  scene(
    'change-payouts',
    'an unknown payout was sent',
    finished(UNKNOWN),
    change('unknown', 'in_progress', { txhash: 'hash-9' }),
  ),
  scene('change-payouts', 'a rejected payout is retried', finished(REJECTED), change('rejected', 'queued')),
  scene(
    'change-payouts',
    'a held payout is released',
    async (stage) => {
      await queued('p')(stage);
      await stage.sender.holdPayout('p', 0, HOLD);
      stage.account.clock.advance(1);
    },
    change('held', 'queued'),
  ),
  ...(['cancelled', 'queued'] as const).map((to) => {
    const payouts = [{ payoutId: 'p', attempt: 1 }, { payoutId: 'q' }, { payoutId: 'r' }, { payoutId: 'nobody' }];
    return scene(
      'change-payouts',
      `many payouts are ${to} at once`,
      async (stage) => {
        await finished(REJECTED, 'p', 'q')(stage);
        await queued('r')(stage);
      },
      changeMany({ from: 'rejected', to, payouts }),
    );
  }),
  scene(
    'change-payouts',
    'many unknown payouts were sent',
    finished(UNKNOWN, 'p', 'q'),
    changeMany({
      ...{ from: 'unknown', to: 'in_progress' },
      payouts: ['p', 'q'].map((payoutId) => ({ payoutId, txhash: `hash-${payoutId}` })),
    }),
  ),
  scene(
    'change-payouts',
    'a transaction is completed',
    finished(ACCEPTED),
    change('in_progress', 'completed', { fee: '0.1' }),
  ),
  scene('add-approval', 'a payout is approved', queued('p'), async ({ account }) =>
    addApproval(account.ledger, APPROVAL, 'looked it up'),
  ),
  scene('pause-account', 'the account is paused', nothing, async ({ account }) =>
    account.ledger.pause('ann', 'holiday'),
  ),
  scene(
    'resume-account',
    'the account is resumed',
    async ({ account }) => account.ledger.pause('ann', 'holiday'),
    async ({ account }) => account.ledger.resume('ann', 'over'),
  ),
  scene('declare-new', 'an account is stated to be new', nothing, async ({ account }) =>
    account.ledger.declareNew(ANN),
  ),
  scene('bind-ledger', 'the ledger is bound to another gateway', finished(ACCEPTED), async ({ account }) =>
    account.ledger.bind('https://other.example#1', ANN),
  ),
  scene('publish-event', 'a drop of the balance is told', nothing, async ({ account }) =>
    reportDrop(account.connection, 'missing'),
  ),
  scene('publish-event', 'the head of a journal is told', nothing, async ({ account }) =>
    publishJournalHead(account.connection, { journalId: 'abcdef012345', hash: 'a'.repeat(64), sends: 7 }),
  ),
  scene('object-to-ledger', 'a journal objects', nothing, async ({ sender }) => sender.object(OBJECTION)),
  scene('find-forgotten-sends', 'sends are looked for', finished(ACCEPTED), async ({ sender }, attempt) =>
    sender.findForgottenSends([attempt, { ...attempt, token: 'other' }]),
  ),
  ...[undefined, ACCEPTED, REJECTED].flatMap((outcome): ScriptScenario[] => {
    const adopt = async ({ account }: Stage): Promise<unknown> => {
      const send = { payoutId: 'p', attempt: 3, token: 'adopted', request: REQUEST, outcome };
      return adoptSends(account.connection, [send], DOUBT);
    };
    const told = outcome?.kind ?? 'no outcome';
    const other = { kind: 'accepted', txhash: 'hash-0' } as const;
    return [
      scene('adopt-send', `a send of a payout that is gone is adopted: ${told}`, nothing, adopt),
      scene('adopt-send', `a send of a payout that is queued is adopted: ${told}`, queued('p'), adopt),
      scene('adopt-send', `another send of one that is in progress is adopted: ${told}`, finished(other), adopt),
    ];
  }),
  ...[
    async ({ account }: Stage): Promise<unknown> => {
      const journals = { read: [JOURNAL], givenUp: [OBJECTION.journalId] };
      return adoptLedger(account.connection, { epoch: 3, sendCount: 9 }, 'adoption', journals, ANN);
    },
    // Called again it is another adoption, with a number of its own.
  ].map((run) =>
    scene('adopt-ledger', 'a ledger is adopted', async ({ sender }) => sender.object(OBJECTION), run, run),
  ),
  scene('doubt-payouts', 'what is queued may have been sent', queued('p', 'q'), async ({ account }) =>
    holdSendablePayouts(account.connection, DOUBT),
  ),
  scene('remove-payouts', 'old payouts are removed', completeOld, async ({ account }, before) =>
    removePayouts(account.connection, 'completed', before, 10),
  ),
  scene(
    'remove-payouts',
    'old payouts are removed as they were archived',
    async (stage) => {
      const before = await completeOld(stage);
      return { before, old: await readOldest(stage.account.connection, 'completed', 10) };
    },
    async ({ account }, removal) =>
      removeRead(account.connection, { ...removal, state: 'completed', onlyUnchanged: true }),
  ),
  scene('trim-events', 'old events are dropped', queued('p', 'q', 'r'), async ({ account }) =>
    account.connection.run('trim-events', [3, 100]),
  ),
  scene('read-group-events', 'a group reads events', queued('p'), readGroup),
  scene('ack-group-event', 'a group acknowledges an event', readFirst, async ({ account }, eventId) =>
    account.connection.run('ack-group-event', ['books', 'one', eventId]),
  ),
  scene('set-group-idle', 'a consumer shows that it lives', readFirst, async ({ account }) =>
    account.connection.run('set-group-idle', ['books', 'one', 0, 10]),
  ),
  scene('count-payouts', 'the payouts of each state are counted', finished(UNKNOWN), async ({ account }) =>
    countPayouts(account.connection),
  ),
  scene(
    'write-statistics',
    'statistics are written',
    async ({ account }) =>
      saveStatistics(
        account.connection,
        { revision: '', statistics: {}, batches: {} },
        { statistics: { old: '1', position: '"1-0"' }, batches: { '': '"1-0"', b: '{}' } },
      ),
    async ({ account }) =>
      saveStatistics(account.connection, await loadStatistics(account.connection), {
        statistics: { position: '"2-0"' },
        batches: { '': '"2-0"' },
      }),
  ),
];

/** At least one for every script. */
export const scriptScenarios: readonly ScriptScenario[] = [...SENDS, ...ACTS];
