import type { LedgerConnection } from '../../../src/ledger/ledger-connection.js';
import { readOldest, removeRead } from '../../../src/ledger/remove-payouts.js';
import type { PayoutState } from '../../../src/ledger/states.js';

/** As retention removes them: the oldest of a state. @param before - of entering the state, wall clock, ms */
export async function removePayouts(
  connection: LedgerConnection,
  state: PayoutState,
  before: number,
  limit: number,
): ReturnType<typeof removeRead> {
  return removeRead(connection, { state, before, old: await readOldest(connection, state, limit) });
}
