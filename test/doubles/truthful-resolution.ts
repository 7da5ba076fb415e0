import type { StateChange } from '../../src/ledger/payout-ledger.js';

/**
 * What an operator who has checked the gateway may truthfully state of a payout that is `unknown`: the transaction that
 * paid it, or that it was not sent.
 * @param txhash - the gateway's payment of it, if there is one
 */
export function truthfulResolution(txhash: string | undefined): Pick<StateChange, 'to' | 'txhash'> {
  return txhash === undefined ? { to: 'queued' } : { to: 'in_progress', txhash };
}
