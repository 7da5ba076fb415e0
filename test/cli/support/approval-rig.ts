import { systemClock } from '../../../src/base/clock.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { CliResult } from '../../support/cli.js';
import { CliRig } from './cli-rig.js';

/** An account whose payouts are signed by a shop, and the keys of those who approve them. */
export interface ApprovalRig {
  readonly account: CliRig;
  readonly keys: TestKeys;
  /** Of every command. */
  readonly env: Record<string, string>;
  /** The private key (PEM) of Ann, Rita, Sam or an operator; of Bob `FILE.pub`. */
  readonly files: Readonly<Record<'ann' | 'rita' | 'sam' | 'olga' | 'bob', string>>;
  run(...args: string[]): Promise<CliResult>;
  /** Enqueues a payout that the shop signed. */
  enqueue(payoutId: string, given?: Partial<PayoutInput>): Promise<void>;
  /** As {@link enqueue}; two people of finance have to approve it. */
  hold(payoutId: string, given?: Partial<PayoutInput>): Promise<void>;
  close(): Promise<void>;
}

export const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
export const RULE = { kind: 'policy', reason: 'approve', rule: 'four-eyes', isTampering: false } as const;

/** `ann`, `bob` (OpenSSH), `rita` and `sam` are keys of approvers; Sam is the shop's own person. */
export async function openApprovalRig(): Promise<ApprovalRig> {
  const account = await new CliRig().open();
  const keys = await openTestKeys();
  const [shop, bob] = [await keys.makeKey('shop'), await keys.makeSshKey('bob')];
  const entries: KeyEntry[] = [
    { name: 'shop', role: 'producer', person: 'Sam', public: shop.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
  ];
  const make = async (name: string, role: KeyEntry['role'] = 'approver'): Promise<string> => {
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
  const rig: ApprovalRig = {
    ...{ account, keys, env, files },
    run: async (...args) => account.run(...args),
    async enqueue(payoutId, given = {}) {
      const { requestedBy, ...payout } = aPayout(payoutId, { addressTo: ADDRESS, ...given });
      await ledger.enqueue([{ ...payout, signed: signer.sign(payout, { requestedBy }) }]);
    },
    async hold(payoutId, given) {
      await rig.enqueue(payoutId, given);
      const hold = { ...RULE, message: 'it is 12.5, more than 5', needs: { by: 'finance', persons: 2 } };
      await new RedisSenderLedger(ledger.connection, 'reply').holdPayout(payoutId, 0, hold);
    },
    async close() {
      await account.close();
      await keys.close();
    },
  };
  return rig;
}
