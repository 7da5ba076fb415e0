import { adoptSends } from '../../../src/ledger/adopt-ledger.js';
import type { BeginSend, BreakerRule, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { HOLD, JOURNAL, nextBegin, NO_BREAKER, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import {
  ACCEPTED,
  begun,
  change,
  DOUBT,
  enqueue,
  finished,
  LEASE,
  readyToBegin,
  REJECTED,
  REQUEST,
  TRIPS,
  UNKNOWN,
  type ScriptScenario,
  type Stage,
} from './scenario-stage.js';

/** Scripts that accept payouts, send them and hold the lease. */
export const sendScenarios: readonly ScriptScenario[] = [
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
      const asked = await readyToBegin(stage);
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
  ...[false, true].map((isTampering): ScriptScenario => ({
    name: `a payout is held${isTampering ? ', because someone altered it' : ''}`,
    script: 'hold-payout',
    prepare: async (stage) => {
      await enqueue(stage, 'p');
      stage.account.clock.advance(1);
      return { run: async ({ sender }) => sender.holdPayout('p', 0, { ...HOLD, isTampering }) };
    },
  })),
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
      const asked = await readyToBegin(stage);
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
  accepted('a late acceptance', NO_BREAKER, async (stage) => finished(stage, UNKNOWN)),
  accepted('an acceptance with the txhash of another payout', TRIPS, async (stage) => {
    await finished(stage, ACCEPTED, 'other');
    return begun(stage);
  }),
  accepted('proof of a payment that was written off', NO_BREAKER, async (stage) => {
    const attempt = await finished(stage, UNKNOWN);
    await change('unknown', 'cancelled')(stage);
    stage.account.clock.advance(1);
    return attempt;
  }),
  {
    name: 'attempts that an ended sender left become unknown',
    script: 'mark-sends-unknown',
    prepare: async (stage) => {
      const attempt = await begun(stage);
      const lease = await takeLease(stage.sender, 'two');
      return { run: async ({ sender }) => sender.markSendsUnknown(lease, [attempt], 'left', 5_000) };
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
    name: 'a heartbeat',
    script: 'renew-lease',
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
];

/** The acceptance of an attempt is recorded. */
function accepted(
  name: string,
  rule: BreakerRule,
  prepareAttempt: (stage: Stage) => Promise<SendAttempt>,
): ScriptScenario {
  return {
    name,
    script: 'finish-send',
    prepare: async (stage) => {
      const attempt = await prepareAttempt(stage);
      return { run: async ({ sender }) => sender.finishSend(attempt, ACCEPTED, rule, 0) };
    },
  };
}
