import { systemClock } from '../../../src/base/clock.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { CliRig } from './cli-rig.js';
import { IntentSigner } from '../../control/support/sign-at-once.js';

export type ApprovalRig = Awaited<ReturnType<typeof openApprovalRig>>;

export const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
export const RULE = { kind: 'policy', reason: 'approve', rule: 'four-eyes', isTampering: false } as const;

/**
 * An account whose payouts a shop signs. `files` has the private keys (PEM) of the approvers Ann, Rita and Sam, who is
 * the shop's own person, and of the operator Olga; of the approver Bob the public key that OpenSSH signs with.
 */
export async function openApprovalRig() {
  const account = await new CliRig().open();
  const keys = await openTestKeys();
  const [shop, bob] = [await keys.makeKey('shop'), await keys.makeSshKey('bob')];
  const entries: KeyEntry[] = [
    { name: 'shop', role: 'producer', person: 'Sam', public: shop.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
  ];
  const make = async (name: string, role: KeyEntry['role'] = 'approver') => {
    const { file, public: shown } = await keys.makeKey(name);
    entries.push({ name, role, person: name, public: shown });
    return file;
  };
  const [ann, rita, sam] = [await make('ann'), await make('rita'), await make('sam')];
  const files = { ann, rita, sam, olga: await make('olga', 'operator'), bob: bob.file };
  const { env, ledger, platformId } = account;
  Object.assign(env, { PAYOUT_KEYS_FILE: await keys.writeKeyring(...entries), PATH: process.env['PATH'] ?? '' });
  const key = { name: 'shop', privateKey: shop.privateKey };
  const signer = new IntentSigner({ key, platformId, audience: TEST_AUDIENCE, clock: systemClock });

  async function enqueue(payoutId: string, given: Partial<PayoutInput> = {}) {
    const { requestedBy, ...payout } = aPayout(payoutId, { addressTo: ADDRESS, ...given });
    await ledger.enqueue([{ ...payout, signed: signer.sign(payout, { requestedBy }) }]);
  }

  return {
    ...{ account, keys, env, files, enqueue },
    run: async (...args: string[]) => account.run(...args),
    /** As `enqueue`; two people of finance have to approve it. */
    async hold(payoutId: string, given?: Partial<PayoutInput>) {
      await enqueue(payoutId, given);
      const hold = { ...RULE, message: 'it is 12.5, more than 5', needs: { by: 'finance', persons: 2 } };
      await new RedisSenderLedger(ledger.connection, 'reply').holdPayout(payoutId, 0, hold);
    },
    async close() {
      await account.close();
      await keys.close();
    },
  };
}
