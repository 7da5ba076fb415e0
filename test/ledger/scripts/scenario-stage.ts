import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { ScriptName } from '../../../src/ledger/ledger-connection.js';
import type { BeginSend, BreakerRule, SendAttempt, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { nextBegin, NO_BREAKER, takeLease } from '../contract/ledger-rig.js';
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

/** A scenario of one script. @param run - is given what `prepare` returned */
export function scene<Prepared>(
  script: ScriptName,
  name: string,
  prepare: (stage: Stage) => Promise<Prepared>,
  run: (stage: Stage, prepared: Prepared) => Promise<unknown>,
  again?: (stage: Stage, prepared: Prepared) => Promise<unknown>,
): ScriptScenario {
  return {
    name,
    script,
    async prepare(stage) {
      const prepared = await prepare(stage);
      return {
        run: async (later) => run(later, prepared),
        ...(again === undefined ? {} : { again: async (later: Stage) => again(later, prepared) }),
      };
    },
  };
}

export const ANN = { by: 'ann', reason: 'looked it up' };
export const DOUBT = { ...ANN, doubtMs: 0 };
export const LEASE = { owner: 'one', epoch: 1 };
export const ACCEPTED = { kind: 'accepted', txhash: 'hash-1' } as const;
export const REJECTED = { kind: 'rejected', message: 'no funds' } as const;
export const UNKNOWN = { kind: 'unknown', reason: 'timeout' } as const;
export const TRIPS: BreakerRule = { maxRejectionsInARow: 1, maxUnknownsInARow: 1 };
export const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

export const nothing = async (): Promise<void> => Promise.resolve();

/** Accepts payouts, some time before what comes next. */
export function queued(...payoutIds: string[]) {
  return async ({ account }: Stage): Promise<void> => {
    for (const payoutId of payoutIds) await account.ledger.enqueue([aPayout(payoutId)]);
    account.clock.advance(1);
  };
}

/** Everything is ready for a send; what it would begin with. */
export async function readyToBegin(stage: Stage, payoutId = 'p'): Promise<BeginSend> {
  const { sender } = stage;
  if ((await sender.readSender()).lease === undefined) await takeLease(sender, 'one');
  await queued(payoutId)(stage);
  return nextBegin(sender, LEASE, payoutId);
}

export async function begun(stage: Stage, payoutId = 'p'): Promise<SendAttempt> {
  const asked = await readyToBegin(stage, payoutId);
  await stage.sender.beginSend(asked);
  stage.account.clock.advance(1);
  return asked;
}

type Result = { kind: 'accepted'; txhash: string } | typeof REJECTED | typeof UNKNOWN;

/** Sends payouts, with this result. @returns the first attempt */
export function finished(result: Result, ...payoutIds: string[]) {
  return async (stage: Stage): Promise<SendAttempt> => {
    const attempts: SendAttempt[] = [];
    for (const payoutId of payoutIds.length === 0 ? ['p'] : payoutIds) {
      const attempt = await begun(stage, payoutId);
      await stage.sender.finishSend(attempt, result, NO_BREAKER, 0);
      stage.account.clock.advance(1);
      attempts.push(attempt);
    }
    const [first] = attempts;
    if (first === undefined) throw new Error('no payout was sent');
    return first;
  };
}

export const change =
  (
    from: 'queued' | 'held' | 'unknown' | 'rejected' | 'in_progress',
    to: 'cancelled' | 'queued' | 'in_progress' | 'completed',
    more = {},
  ) =>
  async ({ account }: Stage): Promise<unknown> =>
    account.ledger.change({ payoutId: 'p', from, to, ...ANN, ...more });

/** The stage on an account, whose connection may be instrumented. */
export function stageOf(account: TestAccount): Stage {
  return { account, sender: new RedisSenderLedger(account.connection, 'reply') };
}
