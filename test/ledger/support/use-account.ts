import { afterEach, beforeEach, expect } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { SendAttempt, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { begin, NO_BREAKER, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from './a-payout.js';
import { makeRedisRig, type AccountRig } from './redis-rig.js';
import type { TestAccount } from './test-account.js';

export * from '../contract/ledger-rig.js';
export { aPayout };

/** The account of the running test and its parts, in a file that called `useAccount`. */
export let account: TestAccount;
export let clock: TestAccount['clock'];
export let connection: TestAccount['connection'];
export let keys: TestAccount['connection']['keys'];
export let ledger: TestAccount['ledger'];
export let redis: TestAccount['redis'];
export let sender: SenderLedger;
/** What applications and operators do to it, each with an outcome instead of an error. */
export let rig: AccountRig;

export function useAccount(makeRig: () => AccountRig = makeRedisRig) {
  beforeEach(() => {
    rig = makeRig();
    ({ account } = rig);
    ({ clock, connection, ledger, redis, sender } = account);
    ({ keys } = connection);
  });
  afterEach(async () => account.close());
}

/** Sees that `work` changes nothing in Redis. @returns what came of it */
export async function unchanged<Result>(work: () => Promise<Result>): Promise<Result> {
  const before = await account.dump();
  const result = await work();
  expect(await account.dump()).toEqual(before);
  return result;
}

export const ANN = { by: 'ann', reason: 'looked it up' };
export const ACCEPTED = { kind: 'accepted', gatewayId: 'h' } as const;
export const REJECTED = { kind: 'rejected', message: 'no funds' } as const;
export const UNKNOWN = { kind: 'unknown', reason: 'silence' } as const;

export const names = (count: number, prefix = 'p') => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

export async function enqueue(...payoutIds: string[]) {
  await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
}

export async function change(payoutId: string, from: PayoutState, to: PayoutState, more = {}) {
  await ledger.change({ payoutId, from, to, ...more });
}

export const read = async (payoutId = 'p') => sender.readPayout(payoutId);
export const stateOf = async (payoutId = 'p') => (await ledger.get(payoutId))?.state;

const WAYS: Record<PayoutState, readonly PayoutState[]> = {
  queued: [],
  held: ['held'],
  sending: ['sending'],
  in_progress: ['sending', 'in_progress'],
  completed: ['sending', 'in_progress', 'completed'],
  failed: ['sending', 'in_progress', 'failed'],
  rejected: ['sending', 'rejected'],
  unknown: ['sending', 'unknown'],
  cancelled: ['cancelled'],
  written_off: ['sending', 'unknown', 'written_off'],
};

/** Accepts payouts and brings them into a state, without a sender. */
export async function enter(state: PayoutState, ...payoutIds: string[]) {
  await enqueue(...payoutIds);
  for (const payoutId of payoutIds) {
    let from: PayoutState = 'queued';
    for (const to of WAYS[state]) {
      await change(payoutId, from, to, to === 'in_progress' ? { gatewayId: `hash-${payoutId}` } : {});
      from = to;
    }
  }
}

export async function beginOne(payoutId: string): Promise<SendAttempt> {
  return begin(sender, await takeLease(sender, 'one'), payoutId);
}

export async function begun(payoutId = 'p'): Promise<SendAttempt> {
  await enqueue(payoutId);
  return beginOne(payoutId);
}

export async function finish(attempt: SendAttempt, result: SentOutcome, rule = NO_BREAKER) {
  return sender.finishSend(attempt, result, rule, 0);
}

/** The account's sender sends payouts that are queued, with this result. */
export async function sendAs(result: SentOutcome, ...payoutIds: string[]): Promise<SendAttempt[]> {
  const attempts: SendAttempt[] = [];
  for (const payoutId of payoutIds) {
    const attempt = await beginOne(payoutId);
    await finish(attempt, result);
    attempts.push(attempt);
  }
  return attempts;
}
