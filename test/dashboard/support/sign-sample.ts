import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import type { Hold, PayoutInput } from '../../../src/ledger/payout.js';
import { writePolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { SampleAccount } from './sample-account.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';

const HOUR_MS = 3_600_000;

/**
 * Adds payouts that a shop signed, held by each kind of rule, and what a worker with a policy tells.
 * @returns what a dashboard needs that judges the account by itself
 */
export async function signSample(account: SampleAccount) {
  const { ledger, sender, connection, clock, platformId } = account;
  const keys = await openTestKeys();
  const [shop, ann] = [await keys.makeKey('shop'), await keys.makeKey('ann')];
  const keysFile = await keys.writeKeyring(
    { name: 'shop', role: 'producer', person: 'Shop backend', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: (await keys.makeKey('bob')).public },
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
  const hold = async (payoutId: string, given: Partial<PayoutInput>, of: Partial<Hold>): Promise<string> => {
    const payout = aPayout(payoutId, { addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', ...given });
    const signed = signer.sign(payout);
    await ledger.enqueue([{ ...payout, signed }]);
    await ledger.clearOutbox('queued', [payoutId]);
    await sender.holdPayout(payoutId, 0, { kind: 'policy', reason: 'wait', message: '', isTampering: false, ...of });
    return hashIntent(intentOf(platformId, payout, signed));
  };
  const iso = (inMs: number): string => new Date(clock.wallNow() + inMs).toISOString();

  const large = { amount: '7200', reference: 'Invoice 2026-120' };
  const intent = await hold('signed:large', large, {
    ...{ reason: 'approve', rule: 'four-eyes', needs: { by: 'finance', persons: 1 } },
    message: 'Rule four-eyes of the policy: it is 7200, more than 5000.',
  });
  const said = { payoutId: 'signed:large', intent, decision: 'approve', by: 'ann' } as const;
  const approval = { audience: TEST_AUDIENCE, ...said, at: iso(0), expiresAt: iso(24 * HOUR_MS) };
  const signature = signText(formatApproval(platformId, approval), ann.privateKey);
  await addApproval(ledger, { ...approval, signature }, 'invoice checked');
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
    close: async () => keys.close(),
  };
}
