import type { StoredReceipt } from './control-record.js';
import { ConflictError, NotFoundError } from '../errors.js';
import { formatAlternatives } from '../format.js';
import type { ScriptRejection } from './script-rejection.js';
import type { PayoutState } from './states.js';
import { reachableFrom } from './transitions.js';

/** A change by an operator or by the gateway's status. */
export interface StateChange {
  readonly payoutId: string;
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** The attempt that was decided about, if a later one must not be changed. */
  readonly attempt?: number;
  /** The operator, if any. */
  readonly by?: string;
  readonly reason?: string;
  /** The payout's transaction from now on; if it becomes `unknown`, the one that proved wrong. */
  readonly txhash?: string;
  readonly fee?: string;
  readonly message?: string;
  /** The operator's signed act, as JSON. */
  readonly act?: string;
  /** The worker's receipt of the final state; its time is the time of the change. */
  readonly receipt?: StoredReceipt | undefined;
}

export function toChangeError(rejection: ScriptRejection, { payoutId, from, to, txhash = '' }: StateChange): Error {
  switch (rejection.kind) {
    case 'wrong_state':
      return wrongStateError(payoutId, rejection.state, from, to);
    case 'txhash_taken':
      return new ConflictError(`txhash ${txhash} already belongs to payout ${rejection.payoutId}`, ['txhash']);
    case 'sent_since':
      return new ConflictError(
        `Payout ${payoutId} was sent again meanwhile (attempt ${rejection.attempt}): look at it again, then decide`,
        ['attempt'],
      );
    case 'in_doubt':
      return new ConflictError(
        `The request of payout ${payoutId} may still be on its way to the gateway for ${Math.ceil(rejection.forMs / 1_000)} s: ask the gateway again after that, then decide`,
        ['state'],
      );
    case 'paid_late':
      return new ConflictError(
        `Payout ${payoutId} was paid as ${rejection.txhash}, which the gateway reported late: it is not sent again. Resolve it with that txhash, write it off, or cancel it`,
        ['lateTxhash'],
      );
    case 'not_found':
      return new NotFoundError(`Payout ${payoutId} not found`);
    default:
      return new Error(`change-state refused payout ${payoutId} as ${rejection.kind}`);
  }
}

export function wrongStateError(
  payoutId: string,
  found: PayoutState | undefined,
  from: PayoutState | readonly PayoutState[],
  to: PayoutState,
): ConflictError {
  const needed = formatAlternatives([from].flat());
  if (found === undefined) return new ConflictError(`Payout ${payoutId} is not ${needed}`, ['state']);
  const allowed = reachableFrom(found).join(', ') || 'none, it is final';
  return new ConflictError(
    `Cannot move payout ${payoutId} from ${found} to ${to}: that needs ${needed}. Allowed from ${found}: ${allowed}${describeOtherWay(found, from)}`,
    ['state'],
  );
}

/** Advice if the payout is held, or must be released and is not held. */
function describeOtherWay(found: PayoutState, from: PayoutState | readonly PayoutState[]): string {
  if (found === 'held')
    return '. It was not sent: `payouts release` queues it again once the cause of its hold is gone';
  if (from !== 'held') return '';
  if (found === 'rejected') return '. `payouts retry` queues it again';
  return found === 'unknown' ? '. `payouts resolve` decides what became of it' : '';
}
