import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../src/base/clock.js';
import { formatApproval, paymentOf } from '../../../src/control/approvals/approval.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import { POSITION, readBatchSums } from '../../../src/ledger/reads/batches.js';
import { writePolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { STREAM_BEGINNING } from '../../../src/ledger/reads/state-events.js';
import { writeWorkerReport, type WorkerReport } from '../../../src/ledger/reads/workers.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { Hold, PayoutInput } from '../../../src/ledger/payout.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { begin, HOLD, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';
import { IntentSigner, signText } from '../../control/support/sign-at-once.js';

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
  const beginSend = async (payoutId: string): Promise<SendAttempt> => begin(sender, lease, payoutId);
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
export async function fillAccount(account: SampleAccount) {
  const { ledger, queues, clock } = account;
  const reference = 'Invoice 2026-114';
  const reason = 'no response within 60000 ms; the request may have been paid';
  const why = { by: 'ann', reason: 'paid by other means' };
  await account.sendAs('order:2040', { kind: 'unknown', reason });
  await ledger.change({ payoutId: 'order:2040', from: 'unknown', to: 'written_off', ...why });
  await account.sendAs('order:2041', { kind: 'accepted', gatewayId: 'a7c1e4' });
  await ledger.change({ payoutId: 'order:2041', from: 'in_progress', to: 'completed', fee: '1.1' });
  await account.sendAs('order:2042', { kind: 'accepted', gatewayId: 'f00dbeef' }, { amount: '250', reference });
  const message = 'the gateway reported a failure';
  await ledger.change({ payoutId: 'order:2042', from: 'in_progress', to: 'failed', message });
  const tiny = { amount: '0.00000142', paymentId: 12 };
  await account.sendAs('order:2043', { kind: 'accepted', gatewayId: 'c0ffee' }, tiny);
  await account.sendAs('order/2044+a=b', { kind: 'unknown', reason });
  const rejected = { kind: 'rejected', message: 'Insufficient balance' } as const;
  await account.sendAs('order:2045', rejected, { amount: '9000', reference: 'Affiliates, September' });
  await account.enqueue('order:2046', { notBefore: new Date(clock.wallNow() + 86_400_000).toISOString() });
  await account.enqueue('order:2050', { priority: 5 });
  await account.enqueue('order:2047', { metadata: { invoice: 77, team: 'payments' }, batch: 'september' });
  await account.enqueue('order:2048');
  await ledger.change({ payoutId: 'order:2048', from: 'queued', to: 'cancelled', ...why });
  await account.enqueue('order:2051');
  await account.sender.holdPayout('order:2051', 0, HOLD);
  await account.enqueue('order:2049');
  await account.beginSend('order:2049');
  const polled = { payoutId: 'order:2043', ...tiny, addressTo: ADDRESS, gatewayId: 'c0ffee' };
  await queues.addStatusJobs([polled], 3_600_000);
  clock.advance(5_000);
}

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

const HOUR_MS = 3_600_000;

/**
 * Adds payouts that a shop signed, held by each kind of rule, and what a worker with a policy tells.
 * @param clock - by which they are signed: commands verify them by the machine's
 * @returns what a dashboard needs that judges the account by itself, and the private keys' files
 */
export async function signSample(account: SampleAccount, clock: Pick<Clock, 'wallNow'> = account.clock) {
  const { ledger, sender, connection, platformId } = account;
  const keys = await openTestKeys();
  const [shop, ann, bob] = [await keys.makeKey('shop'), await keys.makeKey('ann'), await keys.makeKey('bob')];
  const keysFile = await keys.writeKeyring(
    { name: 'shop', role: 'producer', person: 'Shop backend', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
  );
  const policyFile = join(keys.dir, 'policy.yaml');
  const usdt = 'when: { paymentId: ["7"] }, cap: { amount:';
  const policy = `version: 1
platformId: "${platformId}"
default: send
groups: { finance: [Ann, Bob] }
rules:
  - { name: never-more, ${usdt} "50000" }, over: refuse }
  - { name: four-eyes, ${usdt} "5000" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: day, ${usdt} "20000", within: 24h }, over: wait }
`;
  await writeFile(policyFile, policy, { mode: 0o600 });
  const key = { name: 'shop', privateKey: shop.privateKey };
  const signer = new IntentSigner({ key, platformId, audience: TEST_AUDIENCE, clock });

  /** Enqueues a payout that a rule holds. @returns the hash of its intent */
  const hold = async (payoutId: string, given: Partial<PayoutInput>, of: Partial<Hold>) => {
    const payout = aPayout(payoutId, { addressTo: ADDRESS, ...given });
    const signed = signer.sign(payout);
    await ledger.enqueue([{ ...payout, signed }]);
    await ledger.clearOutbox('queued', [payoutId]);
    await sender.holdPayout(payoutId, 0, { kind: 'policy', reason: 'wait', message: '', isTampering: false, ...of });
    return hashIntent(intentOf(platformId, payout, signed));
  };
  const iso = (inMs: number) => new Date(clock.wallNow() + inMs).toISOString();

  const large = { amount: '7200', reference: 'Invoice 2026-120' };
  const intent = await hold('signed:large', large, {
    ...{ reason: 'approve', rule: 'four-eyes', needs: { by: 'finance', persons: 1 } },
    message: 'Rule four-eyes of the policy: it is 7200, more than 5000.',
  });
  const said = { payoutId: 'signed:large', intent, decision: 'approve', reason: 'invoice checked', by: 'ann' } as const;
  const payment = paymentOf(await ledger.require('signed:large'));
  const approval = { audience: TEST_AUDIENCE, ...said, ...payment, at: iso(0), expiresAt: iso(24 * HOUR_MS) };
  const signature = signText(formatApproval(platformId, approval), ann.privateKey);
  await addApproval(ledger, { ...approval, signature });
  const full = 'Rule day of the policy: 18000 of 20000 are spent, and it is 4000.';
  await hold('signed:waits', { amount: '4000' }, { rule: 'day', message: full, until: iso(3 * HOUR_MS) });
  const never = 'Rule never-more of the policy: it is 60000, more than 50000.';
  await hold('signed:refused', { amount: '60000' }, { reason: 'refuse', rule: 'never-more', message: never });
  const day = { rule: 'day', unit: 'amount', limit: '20000', withinMs: 24 * HOUR_MS } as const;
  const buckets = [{ bucket: '', spent: '18000', wanted: '4000', ratio: 0.9 }];
  await writePolicyReport(connection, {
    ...{ hash: 'c0de'.repeat(16), at: Date.now(), ratesAt: null, ratesMissingSince: null },
    rules: [{ ...day, per: null, unknown: null, buckets }],
    held: [
      { rule: 'four-eyes', reason: 'approve', count: 1 },
      { rule: 'day', reason: 'wait', count: 1 },
      { rule: 'never-more', reason: 'refuse', count: 1 },
    ],
  });
  return {
    options: { keysFile, policyFiles: new Map([[platformId, policyFile]]) },
    keyFiles: { ann: ann.file, bob: bob.file },
    close: async () => keys.close(),
  };
}
