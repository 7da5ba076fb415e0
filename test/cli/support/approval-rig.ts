import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { systemClock } from '../../../src/base/clock.js';
import type { NewPayout, PayoutInput } from '../../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from './account-cli.js';
import { runInProcess } from './in-process.js';

/** An account whose payouts are signed by a shop, and the keys of those who approve them. */
export interface ApprovalRig {
  readonly account: AccountCli;
  readonly keys: TestKeys;
  readonly env: Record<string, string>;
  /** The private key (PEM) of Ann, Rita, Sam or an operator; of Bob `FILE.pub`. */
  readonly files: Readonly<Record<'ann' | 'rita' | 'sam' | 'olga' | 'bob', string>>;
  run(...args: string[]): Promise<CliResult>;
  runProcess(...args: string[]): Promise<CliResult>;
  /** Enqueues a payout that the shop signed. */
  enqueue(payoutId: string, given?: Partial<PayoutInput>): Promise<void>;
  /** As {@link enqueue}; two people of finance have to approve it. */
  hold(payoutId: string, given?: Partial<PayoutInput>): Promise<void>;
  close(): Promise<void>;
}

export const RULE = { kind: 'policy', reason: 'approve', rule: 'four-eyes', isTampering: false } as const;

/** `ann`, `bob` (OpenSSH), `rita` and `sam` are keys of approvers; Sam is the shop's own person. */
export async function openApprovalRig(): Promise<ApprovalRig> {
  const account = openAccountCli();
  const keys = await openTestKeys();
  const [shop, ann, rita, sam] = await Promise.all(['shop', 'ann', 'rita', 'sam'].map((name) => keys.makeKey(name)));
  const [olga, bob] = [await keys.makeKey('olga'), await keys.makeSshKey('bob')];
  if (shop === undefined || ann === undefined || rita === undefined || sam === undefined) throw new Error('no keys');
  const entry = (name: string, role: KeyEntry['role'], person: string, key: { readonly public: string }): KeyEntry => ({
    ...{ name, role, person, public: key.public },
  });
  const keyring = await keys.writeKeyring(
    entry('shop', 'producer', 'Sam', shop),
    entry('ann', 'approver', 'Ann', ann),
    entry('bob', 'approver', 'Bob', bob),
    entry('rita', 'approver', 'Rita', rita),
    entry('sam', 'approver', 'Sam', sam),
    entry('olga', 'operator', 'Olga', olga),
  );
  const { ledger } = account;
  const { connection } = ledger;
  const signer = new IntentSigner({
    key: { name: 'shop', privateKey: shop.privateKey },
    platformId: connection.platformId,
    audience: TEST_AUDIENCE,
    clock: systemClock,
  });
  const env = { ...account.env, PAYOUT_KEYS_FILE: keyring, PATH: process.env['PATH'] ?? '' };
  const rig: ApprovalRig = {
    ...{ account, keys, env },
    files: { ann: ann.file, rita: rita.file, sam: sam.file, olga: olga.file, bob: bob.file },
    run: async (...args) => runInProcess(args, env),
    runProcess: async (...args) => runCli(args, { env }),
    async enqueue(payoutId, given = {}) {
      const { requestedBy, ...payout } = aPayout(payoutId, {
        addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
        ...given,
      });
      const signed: NewPayout = { ...payout, signed: signer.sign(payout, { requestedBy }) };
      await ledger.enqueue([signed]);
    },
    async hold(payoutId, given) {
      await rig.enqueue(payoutId, given);
      const hold = { ...RULE, message: 'it is 12.5, more than 5', needs: { by: 'finance', persons: 2 } };
      await new RedisSenderLedger(connection, 'reply').holdPayout(payoutId, 0, hold);
    },
    async close() {
      await account.close();
      await keys.close();
    },
  };
  return rig;
}
