import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import type { DashboardOptions } from '../../../src/dashboard/index.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import type { Hold, PayoutInput } from '../../../src/ledger/payout.js';
import { writePolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { SampleAccount } from './sample-account.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';

/** What a dashboard needs that judges a sample account by itself. */
export interface SignedSample {
  readonly options: Pick<DashboardOptions, 'keysFile' | 'policyFiles'>;
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const GROUP = { by: 'finance', persons: 1 };

/** Adds payouts that a shop signed, held by each kind of rule, and what a worker with a policy tells. */
export async function signSample(account: SampleAccount): Promise<SignedSample> {
  const { ledger, sender, connection, clock, platformId } = account;
  const keys = await openTestKeys();
  const [shop, ann] = [await keys.makeKey('shop'), await keys.makeKey('ann')];
  const keysFile = await keys.writeKeyring(
    { name: 'shop', role: 'producer', person: 'Shop backend', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: (await keys.makeKey('bob')).public },
  );
  const policyFile = join(keys.dir, 'policy.yaml');
  await writeFile(policyFile, policyText(platformId), { mode: 0o600 });
  const signer = new IntentSigner({
    key: { name: 'shop', privateKey: shop.privateKey },
    platformId,
    audience: TEST_AUDIENCE,
    clock,
  });

  const enqueue = async (payoutId: string, given: Partial<PayoutInput>): Promise<string> => {
    const payout = aPayout(payoutId, { addressTo: ADDRESS, ...given });
    const signed = signer.sign(payout);
    await ledger.enqueue([{ ...payout, signed }]);
    await ledger.clearOutbox('queued', [payoutId]);
    return hashIntent(intentOf(platformId, payout, signed));
  };
  const hold = async (payoutId: string, of: Partial<Hold>): Promise<unknown> =>
    sender.holdPayout(payoutId, 0, { kind: 'policy', reason: 'wait', message: '', isTampering: false, ...of });
  const iso = (inMs: number): string => new Date(clock.wallNow() + inMs).toISOString();
  const approve = async (payoutId: string, intent: string): Promise<void> => {
    const approval = {
      audience: TEST_AUDIENCE,
      payoutId,
      intent,
      decision: 'approve',
      by: 'ann',
      at: iso(0),
      expiresAt: iso(24 * HOUR_MS),
    } as const;
    const signed: SignedApproval = {
      ...approval,
      signature: signText(formatApproval(platformId, approval), ann.privateKey),
    };
    await addApproval(ledger, signed, 'invoice checked');
  };

  const large = await enqueue('signed:large', { amount: '7200', reference: 'Invoice 2026-120' });
  const why = 'Rule four-eyes of the policy: it is 7200, more than 5000.';
  await hold('signed:large', { reason: 'approve', rule: 'four-eyes', needs: GROUP, message: why });
  await approve('signed:large', large);
  await enqueue('signed:waits', { amount: '4000' });
  const full = 'Rule day of the policy: 18000 of 20000 are spent, and it is 4000.';
  await hold('signed:waits', { rule: 'day', message: full, until: iso(3 * HOUR_MS) });
  await enqueue('signed:refused', { amount: '60000' });
  const never = 'Rule never-more of the policy: it is 60000, more than 50000.';
  await hold('signed:refused', { reason: 'refuse', rule: 'never-more', message: never });
  await writePolicyReport(connection, {
    ...{ hash: 'c0de'.repeat(16), at: Date.now(), ratesAt: null, ratesMissingSince: null },
    rules: [
      {
        ...{ rule: 'day', unit: 'amount', limit: '20000', withinMs: 24 * HOUR_MS, per: null, unknown: null },
        buckets: [{ bucket: '', spent: '18000', wanted: '4000', ratio: 0.9 }],
      },
    ],
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

function policyText(platformId: number): string {
  const rules = [
    '{ name: never-more, when: { paymentId: ["7"] }, cap: { amount: "50000" }, over: refuse }',
    '{ name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5000" }, over: { approve: { by: finance, quorum: 2 } } }',
    '{ name: day, when: { paymentId: ["7"] }, cap: { amount: "20000", within: 24h }, over: wait }',
  ];
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\nrules:\n`;
  return head + rules.map((rule) => `  - ${rule}\n`).join('');
}
