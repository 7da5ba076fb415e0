import { payoutIdField } from '../fields.js';
import { STATES_WITH_JOB, type StateWithJob } from './states.js';

/** A payout that waits for a job, or a member that this version does not understand, as a newer one may have written it. */
export type OutboxEntry =
  { readonly state: StateWithJob; readonly payoutId: string } | { readonly unknownMember: string };

/**
 * `<state> <payoutId>`. Another id than a payout can have is not believed: of bytes that are no UTF-8 the text is that of
 * another member, which can never be removed.
 */
export function parseOutboxMember(member: string): OutboxEntry {
  const [name, payoutId, ...rest] = member.split(' ');
  const state = STATES_WITH_JOB.find((each) => each === name);
  return state === undefined || rest.length > 0 || !payoutIdField.safeParse(payoutId).success
    ? { unknownMember: member }
    : { state, payoutId: payoutId as string };
}
