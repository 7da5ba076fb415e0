import { ConflictError, NotFoundError } from '../../../src/errors.js';
import { toRecordFields } from '../../../src/ledger/payout-record.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { ChangeOutcome, LedgerRig } from '../contract/ledger-rig.js';
import { aPayout } from './a-payout.js';
import { openTestAccount, type TestAccount } from './test-account.js';

/** The ledger in Redis, for the contract. */
export function makeRedisRig(): LedgerRig & { readonly account: TestAccount } {
  const account = openTestAccount();
  const { connection, ledger, clock } = account;
  return {
    account,
    ledger: new RedisSenderLedger(connection, 'reply'),
    async enqueue(payoutId) {
      await ledger.enqueue([aPayout(payoutId, { addressTo: `wallet-${payoutId}` })]);
    },
    async change(change) {
      try {
        await ledger.change(change);
        return 'done';
      } catch (error) {
        if (error instanceof NotFoundError) return 'not_found';
        if (error instanceof ConflictError) return error.fields[0] as ChangeOutcome;
        throw error;
      }
    },
    pause: async (reason) => ledger.pause('ann', reason),
    resume: async () => ledger.resume('ann', 'go on'),
    async adoptSend({ payoutId, attempt, epoch }) {
      const { paymentId, amount, addressTo } = aPayout(payoutId);
      const fields = toRecordFields({ paymentId, amount, addressTo });
      const args = [clock.wallNow(), 'ann', 'forgotten', payoutId, attempt, epoch, ...fields];
      return (await connection.run('adopt-send', args)) === 1;
    },
    async adoptLedger(highest) {
      const args = [clock.wallNow(), 'ann', 'restored a copy', highest.epoch, highest.sends];
      const [epoch, sends] = (await connection.run('adopt-ledger', args)) as [number, number];
      return { epoch, sends };
    },
    async loseSender() {
      await connection.redis.del(connection.keys.sender);
    },
    advance: (ms) => {
      clock.advance(ms);
    },
    dump: async () => account.dump(),
    close: async () => account.close(),
  };
}
