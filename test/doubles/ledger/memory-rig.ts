import type { ScriptRejection } from '../../../src/ledger/sender-ledger.js';
import { JOURNAL, type ChangeOutcome, type LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { createWallClock } from '../../ledger/support/wall-clock.js';
import { MemoryLedger } from './memory-ledger.js';

/** The ledger in memory, for the contract. */
export function makeMemoryRig(
  nextLedgerId = countLedgers(),
  clock = createWallClock(),
): LedgerRig & { readonly ledger: MemoryLedger } {
  const ledger = new MemoryLedger({ clock, nextLedgerId });
  return {
    ledger,
    enqueue: async (payoutId, given) => {
      ledger.enqueue({ ...aPayout(payoutId, { addressTo: `wallet-${payoutId}` }), ...given });
      return Promise.resolve();
    },
    change: async (change) => Promise.resolve(toOutcome(ledger.change(change))),
    // The model: one after the other, as if each were alone.
    changeMany: async ({ payouts, ...changes }) =>
      Promise.resolve(payouts.map((payout) => toOutcome(ledger.change({ ...changes, ...payout })))),
    approve: async (approval) => {
      const rejection = ledger.addApproval(approval);
      return Promise.resolve(
        rejection === undefined ? 'kept' : rejection.kind === 'not_found' ? 'not_found' : 'refused',
      );
    },
    marked: async () => Promise.resolve(ledger.marked(Infinity)),
    pause: async (reason) => Promise.resolve(ledger.pause(reason)),
    bind: async (audience) => {
      ledger.bind(audience);
      return Promise.resolve();
    },
    resume: async (act) => Promise.resolve(ledger.resume(act)),
    adoptSend: async (attempt, outcome, doubtMs = 0) => {
      const { paymentId, amount, addressTo } = aPayout(attempt.payoutId);
      const send = { ...attempt, request: { paymentId, amount, addressTo }, outcome };
      const [adopted] = await ledger.adoptSends([send], { by: 'ann', reason: 'forgotten', doubtMs });
      return adopted;
    },
    adoptLedger: async (highest, journals = { read: [JOURNAL], givenUp: [] }, act) =>
      ledger.adoptLedger(highest, journals, undefined, [], act),
    holdSendable: async () => ledger.holdSendable({ by: 'ann', reason: 'no journal has it', doubtMs: 0 }),
    loseSender: async () => {
      ledger.loseSender();
      return Promise.resolve();
    },
    advance: (ms) => {
      clock.advance(ms);
    },
    dump: async () => {
      const { book, journals, objections, ...rest } = ledger.snapshot();
      return Promise.resolve({
        ...rest,
        journals: [...journals.values()],
        objections: [...objections.values()],
        payouts: book.all(),
      });
    },
    close: async () => Promise.resolve(),
  };
}

const OUTCOMES: Partial<Record<ScriptRejection['kind'], ChangeOutcome>> = {
  wrong_state: 'state',
  in_doubt: 'state',
  sent_since: 'attempt',
  txhash_taken: 'txhash',
  paid_late: 'lateTxhash',
};

function toOutcome(rejection: ScriptRejection | undefined): ChangeOutcome {
  return rejection === undefined ? 'done' : (OUTCOMES[rejection.kind] ?? 'not_found');
}

export function countLedgers(): () => string {
  let count = 0;
  return () => `ledger-${(count += 1)}`;
}
