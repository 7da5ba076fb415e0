import { POSITION, readBatchSums } from '../../../src/ledger/reads/batches.js';
import { STREAM_BEGINNING } from '../../../src/ledger/reads/state-events.js';
import { writeWorkerReport, type WorkerReport } from '../../../src/ledger/reads/workers.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { begin, HOLD, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

/** A separate account with payouts brought into their states as the sender and operators do it. */
export type SampleAccount = Awaited<ReturnType<typeof openSampleAccount>>;

export async function openSampleAccount(platformId?: number) {
  const account = openTestAccount(platformId);
  const { connection, ledger, clock } = account;
  const queues = new PayoutQueues(connection);
  const sender = new RedisSenderLedger(connection, 'reply');
  const lease = await takeLease(sender, 'worker-a:4711');

  const enqueue = async (payoutId: string, given: Partial<PayoutInput> = {}): Promise<void> => {
    const payout = aPayout(payoutId, { addressTo: ADDRESS, symbol: 'USD', ...given });
    await ledger.enqueue([payout]);
    await queues.addWithdrawJobs([payout]);
    await ledger.clearOutbox('queued', [payoutId]);
  };
  /** Begins the send of a queued payout, and leaves it in `sending`. */
  const beginSend = async (payoutId: string): Promise<SendAttempt> => begin(sender, lease, payoutId);
  /** Enqueues a payout and records how its send ended. */
  const sendAs = async (payoutId: string, result: SentOutcome, given?: Partial<PayoutInput>): Promise<void> => {
    await enqueue(payoutId, given);
    const attempt = await beginSend(payoutId);
    clock.advance(1_200);
    await sender.finishSend(attempt, result, NO_BREAKER, 0);
    clock.advance(61_000);
  };
  const close = async (): Promise<void> => {
    await queues.close();
    await account.close();
  };
  return { ...account, queues, enqueue, beginSend, sendAs, close };
}

/** Gives the account a payout in every state. The last one stays in `sending`, so no other can begin after it. */
export async function fillAccount(account: SampleAccount): Promise<void> {
  const { ledger, queues, clock } = account;
  const reference = 'Invoice 2026-114';
  await account.sendAs('order:2041', { kind: 'accepted', txhash: 'a7c1e4' });
  await ledger.change({ payoutId: 'order:2041', from: 'in_progress', to: 'completed', fee: '1.1' });
  await account.sendAs('order:2042', { kind: 'accepted', txhash: 'f00dbeef' }, { amount: '250', reference });
  const message = 'the gateway reported a failure';
  await ledger.change({ payoutId: 'order:2042', from: 'in_progress', to: 'failed', message });
  const tiny = { amount: '0.00000142', paymentId: 12 };
  await account.sendAs('order:2043', { kind: 'accepted', txhash: 'c0ffee' }, tiny);
  const reason = 'no response within 60000 ms; the request may have been paid';
  await account.sendAs('order/2044+a=b', { kind: 'unknown', reason });
  const rejected = { kind: 'rejected', message: 'Insufficient balance' } as const;
  await account.sendAs('order:2045', rejected, { amount: '9000', reference: 'Affiliates, September' });
  await account.enqueue('order:2046', { notBefore: new Date(clock.wallNow() + 86_400_000).toISOString() });
  await account.enqueue('order:2050', { priority: 5 });
  await account.enqueue('order:2047', { metadata: { invoice: 77, team: 'payments' }, batch: 'september' });
  await account.enqueue('order:2048');
  const why = { by: 'ann', reason: 'paid by other means' };
  await ledger.change({ payoutId: 'order:2048', from: 'queued', to: 'cancelled', ...why });
  await account.enqueue('order:2051');
  await account.sender.holdPayout('order:2051', 0, HOLD);
  await account.enqueue('order:2049');
  await account.beginSend('order:2049');
  const polled = { payoutId: 'order:2043', ...tiny, addressTo: ADDRESS, txhash: 'c0ffee' };
  await queues.addStatusJobs([polled], 3_600_000);
  clock.advance(5_000);
}

/** A report of a worker process that runs for three hours. */
export async function writeSampleWorker(
  { redis, connection }: SampleAccount,
  name: string,
  report: Partial<WorkerReport>,
): Promise<void> {
  const at = Number((await redis.time())[0]) * 1_000;
  const startedAt = at - 3 * 3_600_000;
  await writeWorkerReport(connection, name, { role: 'standby', at, startedAt, version: '0.3.0', ...report });
}

/** The sums of batches, as the sender would have counted them up to now. */
export async function writeSampleBatches(
  { redis, connection }: SampleAccount,
  names: readonly string[],
): Promise<void> {
  const [newest] = await redis.xrevrange(connection.keys.events, '+', '-', 'COUNT', 1);
  const kept: Record<string, string> = { [POSITION]: JSON.stringify(newest?.[0] ?? STREAM_BEGINNING) };
  for (const name of names) kept[name] = JSON.stringify(await readBatchSums(connection, name));
  await redis.hset(connection.keys.batches, kept);
}
