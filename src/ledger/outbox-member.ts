import { payoutIdField } from '../fields.js';
import { STATES_WITH_JOB, type StateWithJob } from './states.js';

/** A payout that waits for a job, or an unknown member, perhaps of a newer version. */
export type OutboxEntry =
  { readonly state: StateWithJob; readonly payoutId: string } | { readonly unknownMember: string };

/**
 * `<state> <payoutId>`. An impossible payoutId makes the member unknown: bytes that are not UTF-8 decode to the text of
 * another member, which can never be removed.
 */
export function parseOutboxMember(member: string): OutboxEntry {
  const [name, payoutId, ...rest] = member.split(' ');
  const state = STATES_WITH_JOB.find((each) => each === name);
  return state === undefined || rest.length > 0 || !payoutIdField.safeParse(payoutId).success
    ? { unknownMember: member }
    : { state, payoutId: payoutId as string };
}
