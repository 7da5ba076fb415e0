import { setTimeout as delay } from 'node:timers/promises';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../../src/ledger/adopt-ledger.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import { countPayouts } from '../../../src/ledger/reads/state-events.js';
import { loadStatistics, saveStatistics } from '../../../src/ledger/reads/statistics.js';
import { publishJournalHead } from '../../../src/ledger/reads/workers.js';
import { readOldest, removePayouts, removeRead } from '../../../src/ledger/remove-payouts.js';
import { reportDrop } from '../../../src/ledger/reads/reconciliation.js';
import { HOLD, JOURNAL, OBJECTION } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import {
  ACCEPTED,
  ANN,
  change,
  DOUBT,
  enqueue,
  finished,
  GROUP,
  REJECTED,
  REQUEST,
  UNKNOWN,
  type ScriptScenario,
  type Stage,
} from './scenario-stage.js';

const APPROVAL: SignedApproval = {
  ...{ payoutId: 'p', intent: 'ab'.repeat(32), decision: 'approve', by: 'ann', signature: 's' },
  ...{ at: '2030-01-01T09:00:00.000Z', expiresAt: '2030-01-02T09:00:00.000Z' },
};

/** Scripts that change payouts and the account by an operator's word, adopt a ledger, and read events. */
/** Completes a payout of a batch. @returns a later time, wall clock, ms */
async function completeOld(stage: Stage): Promise<number> {
  await stage.account.ledger.enqueue([aPayout('p', { batch: 'october' })]);
  await finished(stage, ACCEPTED);
  await change('in_progress', 'completed')(stage);
  stage.account.clock.advance(10);
  return stage.account.clock.wallNow();
}

export const accountScenarios: readonly ScriptScenario[] = [
  {
    name: 'a payout is cancelled',
    script: 'change-payouts',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      return { run: change('queued', 'cancelled') };
    },
  },
  {
    name: 'an unknown payout was sent',
    script: 'change-payouts',
    prepare: async (stage) => {
      await finished(stage, UNKNOWN);
      return { run: change('unknown', 'in_progress', { txhash: 'hash-9' }) };
    },
  },
  {
    name: 'a rejected payout is retried',
    script: 'change-payouts',
    prepare: async (stage) => {
      await finished(stage, REJECTED);
      return { run: change('rejected', 'queued') };
    },
  },
  {
    name: 'a held payout is released',
    script: 'change-payouts',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      await stage.sender.holdPayout('p', 0, HOLD);
      stage.account.clock.advance(1);
      return { run: change('held', 'queued') };
    },
  },
  ...(['cancelled', 'queued'] as const).map((to): ScriptScenario => ({
    name: `many payouts are ${to} at once`,
    script: 'change-payouts',
    prepare: async (stage) => {
      await finished(stage, REJECTED, 'p');
      await finished(stage, REJECTED, 'q');
      await enqueue(stage, 'r');
      stage.account.clock.advance(1);
      const payouts = [{ payoutId: 'p', attempt: 1 }, { payoutId: 'q' }, { payoutId: 'r' }, { payoutId: 'nobody' }];
      const changes = { from: 'rejected', to, payouts, isOneAct: true, ...ANN } as const;
      return { run: async ({ account }) => account.ledger.changeMany(changes) };
    },
  })),
  {
    name: 'many unknown payouts were sent',
    script: 'change-payouts',
    prepare: async (stage) => {
      await finished(stage, UNKNOWN, 'p');
      await finished(stage, UNKNOWN, 'q');
      const payouts = ['p', 'q'].map((payoutId) => ({ payoutId, txhash: `hash-${payoutId}` }));
      const changes = { from: 'unknown', to: 'in_progress', payouts, isOneAct: true, ...ANN } as const;
      return { run: async ({ account }) => account.ledger.changeMany(changes) };
    },
  },
  {
    name: 'a payout is approved',
    script: 'add-approval',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      return { run: async ({ account }) => addApproval(account.ledger, APPROVAL, 'looked it up') };
    },
  },
  {
    name: 'a transaction is completed',
    script: 'change-payouts',
    prepare: async (stage) => {
      await finished(stage, ACCEPTED);
      return { run: change('in_progress', 'completed', { fee: '0.1' }) };
    },
  },
  {
    name: 'the account is paused',
    script: 'pause-account',
    prepare: async () => Promise.resolve({ run: async ({ account }: Stage) => account.ledger.pause('ann', 'holiday') }),
  },
  {
    name: 'an account is stated to be new',
    script: 'declare-new',
    prepare: async () => Promise.resolve({ run: async ({ account }: Stage) => account.ledger.declareNew(ANN) }),
  },
  {
    name: 'the ledger is bound to another gateway',
    script: 'bind-ledger',
    prepare: async (stage) => {
      await finished(stage, ACCEPTED);
      return { run: async ({ account }) => account.ledger.bind('https://other.example#1', ANN) };
    },
  },
  {
    name: 'a drop of the balance is told',
    script: 'publish-event',
    prepare: async () =>
      Promise.resolve({ run: async ({ account }: Stage) => reportDrop(account.connection, 'missing') }),
  },
  {
    name: 'the head of a journal is told',
    script: 'publish-event',
    prepare: async () => {
      const head = { journalId: 'abcdef012345', hash: 'a'.repeat(64), sends: 7 };
      return Promise.resolve({ run: async ({ account }: Stage) => publishJournalHead(account.connection, head) });
    },
  },
  {
    name: 'the account is resumed',
    script: 'resume-account',
    prepare: async ({ account }) => {
      await account.ledger.pause('ann', 'holiday');
      return { run: async (stage) => stage.account.ledger.resume('ann', 'over') };
    },
  },
  {
    name: 'a journal objects',
    script: 'object-to-ledger',
    prepare: async () => Promise.resolve({ run: async ({ sender }: Stage) => sender.object(OBJECTION) }),
  },
  {
    name: 'sends are looked for',
    script: 'find-forgotten-sends',
    prepare: async (stage) => {
      const attempt = await finished(stage, ACCEPTED);
      return { run: async ({ sender }) => sender.findForgottenSends([attempt, { ...attempt, token: 'other' }]) };
    },
  },
  ...([undefined, ACCEPTED, REJECTED] as const).flatMap((outcome): ScriptScenario[] => [
    {
      name: `a send of a payout that is gone is adopted: ${outcome?.kind ?? 'no outcome'}`,
      script: 'adopt-send',
      prepare: async () => Promise.resolve({ run: async (stage: Stage) => adopt(stage, outcome) }),
    },
    {
      name: `a send of a payout that is queued is adopted: ${outcome?.kind ?? 'no outcome'}`,
      script: 'adopt-send',
      prepare: async (stage) => {
        await enqueue(stage, 'p');
        stage.account.clock.advance(1);
        return { run: async (again) => adopt(again, outcome) };
      },
    },
    {
      name: `another send of a payout that is in progress is adopted: ${outcome?.kind ?? 'no outcome'}`,
      script: 'adopt-send',
      prepare: async (stage) => {
        await finished(stage, { kind: 'accepted', txhash: 'hash-0' } as unknown as typeof ACCEPTED);
        return { run: async (again) => adopt(again, outcome) };
      },
    },
  ]),
  {
    name: 'a ledger is adopted',
    script: 'adopt-ledger',
    prepare: async ({ sender }) => {
      await sender.object(OBJECTION);
      const journals = { read: [JOURNAL], givenUp: [OBJECTION.journalId] };
      const run = async ({ account }: Stage): Promise<unknown> =>
        adoptLedger(account.connection, { epoch: 3, sendCount: 9 }, 'adoption', journals, ANN);
      // Another adoption, with a number of its own.
      return { run, again: run };
    },
  },
  {
    name: 'what is queued may have been sent',
    script: 'doubt-payouts',
    prepare: async (stage) => {
      await enqueue(stage, 'p', 'q');
      stage.account.clock.advance(1);
      return { run: async ({ account }) => holdSendablePayouts(account.connection, DOUBT) };
    },
  },
  {
    name: 'old payouts are removed',
    script: 'remove-payouts',
    prepare: async (stage) => {
      const before = await completeOld(stage);
      return { run: async ({ account }) => removePayouts(account.connection, 'completed', before, 10) };
    },
  },
  {
    name: 'old payouts are removed as they were archived',
    script: 'remove-payouts',
    prepare: async (stage) => {
      const before = await completeOld(stage);
      const old = await readOldest(stage.account.connection, 'completed', 10);
      const removal = { state: 'completed', before, old, onlyUnchanged: true } as const;
      return { run: async ({ account }) => removeRead(account.connection, removal) };
    },
  },
  {
    name: 'old events are dropped',
    script: 'trim-events',
    prepare: async (stage) => {
      await enqueue(stage, 'p', 'q', 'r');
      const run = async ({ account }: Stage): Promise<unknown> => account.connection.run('trim-events', [3, 100]);
      return { run };
    },
  },
  {
    name: 'a group reads events',
    script: 'read-group-events',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      return { run: readGroup };
    },
  },
  {
    name: 'a group acknowledges an event',
    script: 'ack-group-event',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      const eventId = await firstEvent(stage);
      const run = async ({ account }: Stage): Promise<unknown> =>
        account.connection.run('ack-group-event', [GROUP.group, GROUP.consumer, eventId]);
      return { run };
    },
  },
  {
    name: 'a consumer shows that it lives',
    script: 'set-group-idle',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      await firstEvent(stage);
      await delay(2);
      const run = async ({ account }: Stage): Promise<unknown> =>
        account.connection.run('set-group-idle', [GROUP.group, GROUP.consumer, 0, 10]);
      return { run };
    },
  },
  {
    name: 'the payouts of each state are counted',
    script: 'count-payouts',
    prepare: async (stage) => {
      await finished(stage, UNKNOWN);
      return { run: async ({ account }) => countPayouts(account.connection) };
    },
  },
  {
    name: 'statistics are written',
    script: 'write-statistics',
    prepare: async (stage) => {
      const { connection } = stage.account;
      const none = { revision: '', statistics: {}, batches: {} };
      await saveStatistics(connection, none, {
        statistics: { old: '1', position: '"1-0"' },
        batches: { '': '"1-0"', b: '{}' },
      });
      const run = async ({ account }: Stage): Promise<unknown> => {
        const next = { statistics: { position: '"2-0"' }, batches: { '': '"2-0"' } };
        return saveStatistics(account.connection, await loadStatistics(account.connection), next);
      };
      return { run };
    },
  },
];

async function adopt({ account }: Stage, outcome: typeof ACCEPTED | typeof REJECTED | undefined): Promise<unknown> {
  const send = { payoutId: 'p', attempt: 3, token: 'adopted', request: REQUEST, outcome };
  return adoptSends(account.connection, [send], DOUBT);
}

async function readGroup({ account }: Stage): Promise<unknown> {
  return account.connection.run('read-group-events', [GROUP.group, GROUP.consumer, 30_000, 10]);
}

async function firstEvent(stage: Stage): Promise<string> {
  const [, , [first]] = (await readGroup(stage)) as [string, number, [string, string[]][]];
  return first?.[0] ?? '';
}
