import { systemClock } from '../../../src/base/clock.js';
import { parseAct, type SignedAct } from '../../../src/control/approvals/act.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import type { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import { makePrivateKey, TEST_AUDIENCE } from '../../control/support/keys.js';
import { begin, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';
import { testRedisUrl } from '../../support/account.js';
import { IntentSigner } from '../../control/support/sign-at-once.js';

export const ANN = { by: 'ann', reason: 'ticket 812' };

const WAYS = {
  queued: [],
  rejected: ['sending', 'rejected'],
  unknown: ['sending', 'unknown'],
  in_progress: ['sending', 'in_progress'],
} as const satisfies Partial<Record<PayoutState, readonly PayoutState[]>>;

/** An account of the test's own, and an operator without a gateway. */
export type OperatorRig = Awaited<ReturnType<typeof openOperatorRig>>;

export async function openOperatorRig() {
  const account = openTestAccount();
  const { redis, connection, ledger } = account;
  const { keys, platformId } = connection;
  const operator = new PayoutOperator({ platformId, redisUrl: testRedisUrl() });
  const queues = new PayoutQueues(connection);
  return Promise.resolve({
    account,
    operator,
    /** Enqueues a payout and brings it into a state, without a job. */
    async bring(payoutId: string, state: keyof typeof WAYS) {
      await ledger.enqueue([aPayout(payoutId)]);
      let from: PayoutState = 'queued';
      for (const to of WAYS[state]) {
        await ledger.change({ payoutId, from, to });
        from = to;
      }
      await redis.del(keys.outbox);
    },
    object: async () =>
      new RedisSenderLedger(connection, 'reply').object({
        ...{ journalId: 'j-two', kind: 'ledger', reason: 'It forgot a send.', host: 'h', dir: '/j', sends: 7, at: 1 },
      }),
    withdrawJobs: async () => (await queues.withdraw.getWaiting()).map(({ id }) => id),
    outbox: async () => redis.zrange(keys.outbox, '0', '-1'),
    async close() {
      await operator.close();
      await queues.close();
      await account.close();
    },
  });
}

const OUTCOMES = {
  rejected: { kind: 'rejected', message: 'no funds' },
  unknown: { kind: 'unknown', reason: 'no response' },
} as const;

/** Enqueues payouts that a producer signed, and has the gateway end the one attempt of each. */
export async function sendSigned(
  ledger: PayoutLedger,
  state: keyof typeof OUTCOMES,
  ...payoutIds: readonly string[]
): Promise<void> {
  const { platformId } = ledger.connection;
  const key = { name: 'shop', privateKey: makePrivateKey() };
  const signer = new IntentSigner({ key, platformId, audience: TEST_AUDIENCE, clock: systemClock });
  const payouts = payoutIds.map((payoutId) => aPayout(payoutId));
  await ledger.enqueue(payouts.map((payout) => ({ ...payout, signed: signer.sign(payout) })));
  await sendOnce(ledger, state, ...payoutIds);
}

export async function sendOnce(
  { connection }: PayoutLedger,
  state: keyof typeof OUTCOMES,
  ...payoutIds: readonly string[]
): Promise<void> {
  const sender = new RedisSenderLedger(connection, 'reply');
  const lease = await takeLease(sender, 'one');
  for (const payoutId of payoutIds)
    await sender.finishSend(await begin(sender, lease, payoutId), OUTCOMES[state], NO_BREAKER, 0);
}

export function intentHashOf(platformId: number, payout: Payout) {
  if (payout.signed === undefined) throw new Error(`${payout.payoutId} is not signed`);
  return hashIntent(intentOf(platformId, payout, payout.signed));
}

export function requireAct(text: string | undefined): SignedAct {
  const act = text === undefined ? undefined : parseAct(text);
  if (act === undefined) throw new Error(`this is no act: ${text ?? 'nothing'}`);
  return act;
}
