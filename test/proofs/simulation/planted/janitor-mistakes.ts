import { readAttempts } from '../../../../src/ledger/order-id.js';
import type { LookUpLedger } from '../../../../src/ledger/order-look-ups.js';
import type { LookUps, PieceContext } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { type Mistake, type Mistakes, wrapWithdraw } from './mistakes.js';

const BY = { by: 'a janitor', reason: 'the gateway does not know it' };

/** What a janitor must never do. Each is planted into the real one by what it asks. */
export const janitorMistakes: Mistakes = {
  'a janitor that queues again on "not found"': withLedger((sound, { ledgerOfRun }) => ({
    note: async (asked, lookUp, ...rest) => {
      await sound.note(asked, lookUp, ...rest);
      if (lookUp.answer === 'refused') await ledgerOfRun.change({ ...asked, from: 'unknown', to: 'queued', ...BY });
    },
  })),
  'a janitor that believes a payment of another amount': {
    wrapLookUps: ({ gateway, ledger }) => ({ ledger, gateway: { ...gateway, comparePayment: () => [] } }),
  },
  "a janitor that asks by the payout's id over two attempts": namedByPayout(),
  'a janitor that runs for a payout that is being sent': withLedger((sound, { ledgerOfRun }) => ({
    readDue: async () => [...new Set([...(await sound.readDue()), ...ledgerOfRun.idsIn('sending')])],
    readPayout: async (payoutId) => {
      const payout = await sound.readPayout(payoutId);
      return payout?.state === 'sending' ? { ...payout, state: 'unknown' } : payout;
    },
    // What it is told becomes the outcome of the send, as if its sender had heard that and had reset the request.
    note: async (asked, lookUp, ...rest) => {
      await sound.note(asked, lookUp, ...rest);
      const [attempt] = await readAttempts(ledgerOfRun.connection, asked.payoutId);
      if (lookUp.answer === 'refused' && attempt?.attempt === asked.attempt)
        await ledgerOfRun.finishSend(attempt, { kind: 'unknown', reason: BY.reason }, NO_BREAKER, 0);
    },
  })),
};

const NO_BREAKER = { maxRejectionsInARow: 0, maxUnknownsInARow: 0 };

function withLedger(change: (sound: LookUpLedger, context: PieceContext) => Partial<LookUpLedger>): Mistake {
  return {
    wrapLookUps: ({ gateway, ledger }, context) => ({ gateway, ledger: { ...ledger, ...change(ledger, context) } }),
  };
}

/** The payout's wallet is in this world what its id is: the same for each attempt. */
function namedByPayout(): Mistake {
  const wallets = new WeakMap<WorldLedger, Map<string, string>>();
  const walletsOf = ({ ledgerOfRun }: PieceContext) => {
    const known = wallets.get(ledgerOfRun) ?? new Map<string, string>();
    wallets.set(ledgerOfRun, known);
    return known;
  };
  return {
    wrapGateway: (gateway, context) =>
      wrapWithdraw(gateway, (withdraw) => async (request, options) => {
        walletsOf(context).set(options.orderId ?? '', request.addressTo);
        return withdraw(request, { ...options, orderId: request.addressTo });
      }),
    wrapLookUps: ({ gateway, ledger }, context): LookUps => ({
      ledger,
      gateway: {
        ...gateway,
        findPayment: async (orderId) => {
          const found = await gateway.findPayment?.(walletsOf(context).get(orderId) ?? orderId);
          if (found === undefined) throw new Error('the gateway has no look-up');
          return found;
        },
      },
    }),
  };
}
