import { ConflictError, NotFoundError } from '../../../src/base/errors.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../../src/ledger/adopt-ledger.js';
import { JOURNAL, type ChangeOutcome, type LedgerRig } from '../contract/ledger-rig.js';
import { aPayout } from './a-payout.js';
import { openTestAccount, type TestAccount } from './test-account.js';

export type AccountRig<Account extends TestAccount = TestAccount> = LedgerRig & {
  readonly account: Account;
  readonly ledger: Account['sender'];
};

export const makeRedisRig = (): AccountRig => makeRig(openTestAccount());

/** @param account - in Redis or in memory */
export function makeRig<Account extends TestAccount>(account: Account): AccountRig<Account> {
  const { connection, ledger, clock } = account;
  let adoptions = 0;
  return {
    account,
    ledger: account.sender,
    async enqueue(payoutId, given) {
      await ledger.enqueue([{ ...aPayout(payoutId, { addressTo: `wallet-${payoutId}` }), ...given }]);
    },
    async change(change) {
      try {
        await ledger.change(change);
        return 'done';
      } catch (error) {
        return toOutcome(error as Error);
      }
    },
    async approve(approval) {
      try {
        await addApproval(ledger, approval);
        return 'kept';
      } catch (error) {
        if (error instanceof NotFoundError) return 'not_found';
        if (error instanceof ConflictError) return 'refused';
        throw error;
      }
    },
    marked: async () => connection.redis.smembers(connection.keys.recheck),
    pause: async (reason) => ledger.pause('ann', reason),
    bind: async (audience) => ledger.bind(audience, { by: 'ann', reason: 'moved' }),
    async resume(act) {
      try {
        return await ledger.resume('ann', 'continue', act);
      } catch (error) {
        if (error instanceof ConflictError) return 'objected';
        throw error;
      }
    },
    async adoptSend(attempt, outcome, doubtMs = 0) {
      const { paymentId, amount, addressTo } = aPayout(attempt.payoutId);
      const send = { ...attempt, request: { paymentId, amount, addressTo }, outcome };
      const [adopted] = await adoptSends(connection, [send], { by: 'ann', reason: 'forgotten', doubtMs });
      return adopted;
    },
    adoptLedger: async (highest, journals = { read: [JOURNAL], givenUp: [] }, act) => {
      const actor = { by: 'ann', reason: 'restored a copy' };
      return adoptLedger(connection, highest, `adoption-${(adoptions += 1)}`, journals, actor, [], act);
    },
    holdSendable: async () => holdSendablePayouts(connection, { by: 'ann', reason: 'no journal has it', doubtMs: 0 }),
    async loseSender() {
      await connection.redis.del(connection.keys.sender);
    },
    advance: (ms) => {
      clock.advance(ms);
    },
    close: async () => account.close(),
  };
}

function toOutcome(error: Error | undefined): ChangeOutcome {
  if (error === undefined) return 'done';
  if (error instanceof NotFoundError) return 'not_found';
  if (error instanceof ConflictError) return error.fields[0] as ChangeOutcome;
  throw error;
}
