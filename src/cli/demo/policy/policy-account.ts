import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeApproval, signApproval, APPROVAL_LIFETIME_MS } from '../../../control/approvals/approval-signer.js';
import type { ApprovalDecision } from '../../../ledger/control-record.js';
import { signText } from '../../../control/keys/ed25519.js';
import { systemClock } from '../../../clock.js';
import { openAudience } from '../../../control/keys/audience.js';
import { readKeyringFile } from '../../../control/keys/keyring-file.js';
import { PayoutError } from '../../../errors.js';
import { addApproval } from '../../../control/operator/add-approval.js';
import type { Payout } from '../../../ledger/payout.js';
import { verifyApprovable } from '../../../control/approvals/approvable-payout.js';
import { openAccount } from '../../../queues/open-account.js';
import { PayoutProducer } from '../../../control/payout-producer.js';
import type { Payment } from '../../../sandbox/index.js';
import { createEnvironment, type DemoGround } from '../demo-ground.js';
import { adoptJournal, makeKeys, type DemoApprover } from '../demo-keys.js';
import type { DemoWorker } from '../demo-worker.js';
import { ALICE, BOB, DENY_LIST, OWN_KEY, writePolicy } from './policy-orders.js';

/** An account with keys and a policy, and everybody who has to do with it. */
export interface PolicyAccount {
  readonly platformId: number;
  readonly worker: DemoWorker;
  /** Signs with the shop's key: so does who has stolen it. */
  readonly shop: PayoutProducer;
  readonly read: (payoutId: string) => Promise<Payout>;
  /** Somebody signs a decision about what he verified, and stores it beside the payout. */
  readonly decide: (who: DemoApprover, payoutId: string, decision: ApprovalDecision) => Promise<void>;
  /** Somebody on the worker's host puts an address on the policy's list, and has the worker read it. */
  readonly deny: (address: string) => Promise<void>;
  /** What the gateway paid. */
  readonly book: () => readonly Payment[];
}

/**
 * Opens the account; its worker is created but not started.
 * @param path - the PATH for the worker's process
 */
export async function openPolicyAccount(
  ground: DemoGround,
  { platformId, path }: { readonly platformId: number; readonly path: string },
): Promise<PolicyAccount> {
  const { dir, redis, sandbox } = ground;
  const keys = makeKeys(join(dir, 'keys'), [ALICE, BOB, OWN_KEY]);
  const policyFile = join(dir, 'policy.yaml');
  const denyFile = join(dir, DENY_LIST);
  await writeFile(denyFile, '# nobody yet\n', { mode: ONLY_OWNER });
  await writeFile(policyFile, writePolicy(platformId), { mode: ONLY_OWNER });
  const journalDir = join(dir, 'journal');
  await adoptJournal(journalDir, platformId);

  const shop = new PayoutProducer({ redisUrl: redis.url, platformId, signingKey: keys.shop, audience: keys.audience });
  ground.onClose(async () => shop.close());
  const account = openAccount({ redisUrl: redis.url, platformId });
  ground.onClose(async () => account.close());
  const worker = ground.addWorker('worker', {
    PATH: path,
    ...createEnvironment(ground, platformId, journalDir),
    ...keys.environment,
    PAYOUT_POLICY_FILE: policyFile,
  });
  const keyring = readKeyringFile(keys.keysFile).for(openAudience(keys.audience, undefined, systemClock));

  const read = async (payoutId: string): Promise<Payout> => {
    const payout = await shop.get(payoutId);
    if (payout === undefined) throw new PayoutError('NOT_FOUND', `The order ${payoutId} was lost`);
    return payout;
  };
  return {
    platformId,
    worker,
    shop,
    read,
    async decide({ name }, payoutId, decision) {
      const key = keys.approvers.get(name);
      if (key === undefined) throw new PayoutError('NOT_FOUND', `${name} has no key`);
      const now = Date.now();
      const { intent } = verifyApprovable(await read(payoutId), { platformId, keyring, now }).about;
      const signer = {
        ...{ name, audience: keys.audience },
        sign: async (text: string) => Promise.resolve(signText(text, key)),
      };
      const approval = makeApproval({ payoutId, intent, decision }, signer, now, APPROVAL_LIFETIME_MS);
      await addApproval(account.ledger, await signApproval(signer, platformId, approval));
    },
    async deny(address) {
      await writeFile(denyFile, `${address}\n`);
      worker.reload();
    },
    book: () => sandbox.payments(platformId),
  };
}

const ONLY_OWNER = 0o600;
