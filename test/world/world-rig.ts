import type { LedgerRig } from '../ledger/contract/ledger-rig.js';
import { makeRig } from '../ledger/support/redis-rig.js';
import { createWallClock } from '../ledger/support/wall-clock.js';
import { WorldLedger } from './world-ledger.js';

/** The ledger of a simulated world, for tests of any ledger. */
export function makeWorldRig(
  nextLedgerId = countLedgers(),
  clock = createWallClock(),
): LedgerRig & { readonly ledger: WorldLedger } {
  const ledger = new WorldLedger({ clock, nextLedgerId });
  const { connection, payoutLedger } = ledger;
  return makeRig(
    {
      ...{ connection, clock, ledger: payoutLedger },
      dump: async () => Promise.resolve(ledger.redis.dump()),
      close: async () => Promise.resolve(),
    },
    ledger,
  );
}

export function countLedgers(): () => string {
  let count = 0;
  return () => `ledger-${(count += 1)}`;
}
