import { ConflictError, NotFoundError } from '../../../src/base/errors.js';
import { adoptLedger, adoptSends, holdSendablePayouts, type SendToAdopt } from '../../../src/ledger/adopt-ledger.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { NewPayout } from '../../../src/ledger/payout.js';
import type { KnownJournal, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { JOURNAL } from '../contract/ledger-rig.js';
import { aPayout } from './a-payout.js';
import { openTestAccount, type TestAccount } from './test-account.js';

/** `state`, `attempt` and the txhashes name what stood in the way. */
export type ChangeOutcome = 'done' | 'not_found' | 'state' | 'attempt' | 'gatewayId' | 'lateGatewayId';

/** A ledger under test, and what applications and operators do to it while a sender works. */
export type AccountRig<Account extends TestAccount = TestAccount> = ReturnType<typeof makeRig<Account>>;

type Journals = Readonly<Record<'read', readonly KnownJournal[]> & Record<'givenUp', readonly string[]>>;
const NO_OTHERS: Journals = { read: [JOURNAL], givenUp: [] };

export const makeRedisRig = (): AccountRig => makeRig(openTestAccount());

export function makeRig<Account extends TestAccount>(account: Account) {
  const { connection, ledger, clock } = account;
  let adoptions = 0;
  return {
    account,
    ledger: account.sender as Account['sender'],
    async enqueue(payoutId: string, given?: Pick<NewPayout, 'signed'>) {
      await ledger.enqueue([{ ...aPayout(payoutId, { addressTo: `wallet-${payoutId}` }), ...given }]);
    },
    async change(change: StateChange): Promise<ChangeOutcome> {
      try {
        await ledger.change(change);
        return 'done';
      } catch (error) {
        return toOutcome(error as Error);
      }
    },
    pause: async (reason: string) => ledger.pause('ann', reason),
    bind: async (audience: string) => ledger.bind(audience, { by: 'ann', reason: 'moved' }),
    async resume(act?: string): Promise<boolean | 'objected'> {
      try {
        return await ledger.resume('ann', 'continue', act);
      } catch (error) {
        if (error instanceof ConflictError) return 'objected';
        throw error;
      }
    },
    async adoptSend(attempt: SendAttempt, outcome?: SendToAdopt['outcome'], inFlightMs = 0) {
      const { paymentId, amount, addressTo } = aPayout(attempt.payoutId);
      const send = { ...attempt, request: { paymentId, amount, addressTo }, outcome, inFlightMs };
      const [adopted] = await adoptSends(connection, [send], { by: 'ann', reason: 'forgotten' });
      return adopted;
    },
    adoptLedger: async (
      highest: { epoch: number; sendCount: number },
      journals: Journals = NO_OTHERS,
      act?: string,
    ) => {
      const actor = { by: 'ann', reason: 'restored a copy' };
      const own = { token: `adoption-${(adoptions += 1)}`, inFlightMs: 0 };
      return adoptLedger(connection, { ...highest, acts: 0 }, own, journals, actor, [], act);
    },
    holdSendable: async () => holdSendablePayouts(connection, { by: 'ann', reason: 'no journal has it' }, 0),
    /** Takes the lease, and all that stands beside it, out of the ledger. */
    async loseSender() {
      await connection.redis.del(connection.keys.sender);
    },
    advance: (ms: number) => {
      clock.advance(ms);
    },
    close: async () => account.close(),
  };
}

function toOutcome(error: Error): ChangeOutcome {
  if (error instanceof NotFoundError) return 'not_found';
  if (error instanceof ConflictError) return error.fields[0] as ChangeOutcome;
  throw error;
}
