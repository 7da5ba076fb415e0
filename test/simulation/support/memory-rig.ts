import type { ChangeOutcome, LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { createWallClock } from '../../ledger/support/wall-clock.js';
import { MemoryLedger } from '../memory-ledger.js';

/** The ledger in memory, for the contract. */
export function makeMemoryRig(
  nextLedgerId = countLedgers(),
  clock = createWallClock(),
): LedgerRig & { readonly ledger: MemoryLedger } {
  const ledger = new MemoryLedger({ clock, nextLedgerId });
  return {
    ledger,
    enqueue: async (payoutId) => {
      ledger.enqueue(aPayout(payoutId, { addressTo: `wallet-${payoutId}` }));
      return Promise.resolve();
    },
    change: async (change) => {
      const refusal = ledger.change(change);
      const words: Record<string, ChangeOutcome> = { wrong_state: 'state', txhash_taken: 'txhash' };
      return Promise.resolve(refusal === undefined ? 'done' : (words[refusal.kind] ?? 'not_found'));
    },
    pause: async (reason) => Promise.resolve(ledger.pause(reason)),
    resume: async () => Promise.resolve(ledger.resume()),
    adoptSend: async (send) =>
      Promise.resolve(ledger.adoptSend({ ...send, payout: aPayout(send.payoutId) }, 'ann', 'forgotten')),
    adoptLedger: async (highest) => Promise.resolve(ledger.adoptLedger(highest)),
    loseSender: async () => {
      ledger.loseSender();
      return Promise.resolve();
    },
    advance: (ms) => {
      clock.advance(ms);
    },
    dump: async () => {
      const { book, ...rest } = ledger.snapshot();
      return Promise.resolve({ ...rest, payouts: book.all() });
    },
    close: async () => Promise.resolve(),
  };
}

export function countLedgers(): () => string {
  let count = 0;
  return () => `ledger-${(count += 1)}`;
}
