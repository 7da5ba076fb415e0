import { setTimeout as delay } from 'node:timers/promises';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../../src/ledger/adopt-ledger.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { removePayouts } from '../../../src/ledger/remove-payouts.js';
import type { ScriptName } from '../../../src/ledger/scripts.js';
import type { BeginSend, BreakerRule, SendAttempt, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { JOURNAL, nextBegin, NO_BREAKER, OBJECTION, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import type { TestAccount } from '../support/test-account.js';

/** An account, and what its sender sees of it. */
export interface Stage {
  readonly account: TestAccount;
  readonly sender: SenderLedger;
}

/** A call that runs a script, on a ledger that was made ready for it. */
export interface ScriptScenario {
  readonly name: string;
  readonly script: ScriptName;
  /** Brings the account into the state in which the script is run. @returns what the call needs */
  readonly prepare: (stage: Stage) => Promise<Call>;
}

/** The call itself; `again`: what its caller does when it failed, where that is not the same call. */
export interface Call {
  readonly run: (stage: Stage) => Promise<unknown>;
  readonly again?: (stage: Stage) => Promise<unknown>;
}

const ANN = { by: 'ann', reason: 'looked it up' };
const DOUBT = { ...ANN, doubtMs: 0 };
const LEASE = { owner: 'one', epoch: 1 };
const ACCEPTED = { kind: 'accepted', txhash: 'hash-1' } as const;
const REJECTED = { kind: 'rejected', message: 'no funds' } as const;
const UNKNOWN = { kind: 'unknown', reason: 'timeout' } as const;
const TRIPS: BreakerRule = { maxRejectionsInARow: 1, maxUnknownsInARow: 1 };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const GROUP = { group: 'books', consumer: 'one' };

async function enqueue({ account }: Stage, ...payoutIds: string[]): Promise<void> {
  for (const payoutId of payoutIds) await account.ledger.enqueue([aPayout(payoutId)]);
}

async function begun(stage: Stage, payoutId = 'p'): Promise<SendAttempt> {
  const { sender } = stage;
  if ((await sender.readSender()).lease === undefined) await takeLease(sender, 'one');
  await enqueue(stage, payoutId);
  const asked = await nextBegin(sender, LEASE, payoutId);
  await sender.beginSend(asked);
  stage.account.clock.advance(1);
  return asked;
}

async function finished(
  stage: Stage,
  result: typeof ACCEPTED | typeof REJECTED | typeof UNKNOWN,
  payoutId = 'p',
): Promise<SendAttempt> {
  const attempt = await begun(stage, payoutId);
  await stage.sender.finishSend(attempt, result, NO_BREAKER, 0);
  stage.account.clock.advance(1);
  return attempt;
}

const change =
  (
    from: 'queued' | 'unknown' | 'rejected' | 'in_progress',
    to: 'cancelled' | 'queued' | 'in_progress' | 'completed',
    more = {},
  ) =>
  async ({ account }: Stage): Promise<unknown> =>
    account.ledger.change({ payoutId: 'p', from, to, ...ANN, ...more });

/** At least one for every script. */
export const scriptScenarios: readonly ScriptScenario[] = [
  {
    name: 'payouts are accepted, one of them in a batch',
    script: 'enqueue-payouts',
    prepare: async (stage) => {
      await enqueue(stage, 'there');
      const payouts = [aPayout('p'), aPayout('there'), aPayout('q', { batch: 'october', reference: 'r' })];
      return { run: async ({ account }) => account.ledger.enqueue(payouts) };
    },
  },
  {
    name: 'a payout that was adopted is enqueued again',
    script: 'enqueue-payouts',
    prepare: async ({ account }) => {
      await adoptSends(account.connection, [{ payoutId: 'p', attempt: 1, token: 't', request: REQUEST }], DOUBT);
      return { run: async ({ account: again }) => again.ledger.enqueue([aPayout('p', { reference: 'r' })]) };
    },
  },
  {
    name: 'a send begins',
    script: 'begin-send',
    prepare: async (stage) => {
      await takeLease(stage.sender, 'one');
      await enqueue(stage, 'p');
      const asked = await nextBegin(stage.sender, LEASE, 'p');
      return {
        run: async ({ sender }) => sender.beginSend(asked),
        // What the sender does when it got no reply: put it back, and begin another attempt.
        again: async ({ sender, account }) => {
          account.clock.advance(1);
          await sender.revertSend(asked, 'no reply');
          account.clock.advance(1);
          const next: BeginSend = await nextBegin(sender, LEASE, 'p');
          await sender.beginSend(next);
        },
      };
    },
  },
  {
    name: 'an attempt is put back',
    script: 'revert-send',
    prepare: async (stage) => {
      const attempt = await begun(stage);
      return { run: async ({ sender }) => sender.revertSend(attempt, 'no connection') };
    },
  },
  {
    name: 'the number of an attempt that never began is used up',
    script: 'revert-send',
    prepare: async (stage) => {
      await takeLease(stage.sender, 'one');
      await enqueue(stage, 'p');
      const asked = await nextBegin(stage.sender, LEASE, 'p');
      return { run: async ({ sender }) => sender.revertSend(asked, 'no reply') };
    },
  },
  ...([ACCEPTED, REJECTED, UNKNOWN] as const).map((result): ScriptScenario => ({
    name: `an outcome is recorded, and may pause the account: ${result.kind}`,
    script: 'finish-send',
    prepare: async (stage) => {
      const attempt = await begun(stage);
      return { run: async ({ sender }) => sender.finishSend(attempt, result, TRIPS, 5_000) };
    },
  })),
  {
    name: 'a late acceptance',
    script: 'finish-send',
    prepare: async (stage) => {
      const attempt = await finished(stage, UNKNOWN);
      return { run: async ({ sender }) => sender.finishSend(attempt, ACCEPTED, NO_BREAKER, 0) };
    },
  },
  {
    name: 'an acceptance with the txhash of another payout',
    script: 'finish-send',
    prepare: async (stage) => {
      await finished(stage, ACCEPTED, 'other');
      const attempt = await begun(stage);
      return { run: async ({ sender }) => sender.finishSend(attempt, ACCEPTED, TRIPS, 0) };
    },
  },
  {
    name: 'proof of a payment that was written off',
    script: 'finish-send',
    prepare: async (stage) => {
      const attempt = await finished(stage, UNKNOWN);
      await change('unknown', 'cancelled')(stage);
      stage.account.clock.advance(1);
      return { run: async ({ sender }) => sender.finishSend(attempt, ACCEPTED, NO_BREAKER, 0) };
    },
  },
  {
    name: 'attempts that an ended sender left become unknown',
    script: 'abandon-sends',
    prepare: async (stage) => {
      const attempt = await begun(stage);
      const lease = await takeLease(stage.sender, 'two');
      return { run: async ({ sender }) => sender.abandonSends(lease, [attempt], 'left', 5_000) };
    },
  },
  {
    name: 'the lease is taken',
    script: 'acquire-lease',
    prepare: async (stage) => {
      await begun(stage);
      // Taken again as it stands by then, as the keeper does.
      const run = async ({ sender }: Stage): Promise<unknown> => {
        const view = await sender.readSender();
        return view.lease?.owner === 'two'
          ? undefined
          : sender.acquireLease('two', view, { ...JOURNAL, journalId: 'j-two' }, 0);
      };
      return { run };
    },
  },
  {
    name: 'the sender is shown',
    script: 'read-sender',
    prepare: async () => Promise.resolve({ run: async ({ sender }: Stage) => sender.readSender() }),
  },
  {
    name: 'a sign of life',
    script: 'beat-lease',
    prepare: async ({ sender }) => {
      await takeLease(sender, 'one');
      return { run: async (stage) => stage.sender.renewLease(LEASE), again: async () => Promise.resolve() };
    },
  },
  {
    name: 'the lease is given back',
    script: 'release-lease',
    prepare: async ({ sender }) => {
      await takeLease(sender, 'one');
      return { run: async (stage) => stage.sender.releaseLease(LEASE) };
    },
  },
  {
    name: 'a payout is cancelled',
    script: 'change-state',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      return { run: change('queued', 'cancelled') };
    },
  },
  {
    name: 'an unknown payout was sent',
    script: 'change-state',
    prepare: async (stage) => {
      await finished(stage, UNKNOWN);
      return { run: change('unknown', 'in_progress', { txhash: 'hash-9' }) };
    },
  },
  {
    name: 'a rejected payout is retried',
    script: 'change-state',
    prepare: async (stage) => {
      await finished(stage, REJECTED);
      return { run: change('rejected', 'queued') };
    },
  },
  {
    name: 'a transaction is completed',
    script: 'change-state',
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
    name: 'what is queued is held',
    script: 'hold-payouts',
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
      await stage.account.ledger.enqueue([aPayout('p', { batch: 'october' })]);
      await finished(stage, ACCEPTED);
      await change('in_progress', 'completed')(stage);
      stage.account.clock.advance(10);
      const before = stage.account.clock.wallNow();
      return { run: async ({ account }) => removePayouts(account.connection, 'completed', before, 10) };
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

/** The stage on an account, whose connection may be instrumented. */
export function stageOf(account: TestAccount): Stage {
  return { account, sender: new RedisSenderLedger(account.connection, 'reply') };
}
