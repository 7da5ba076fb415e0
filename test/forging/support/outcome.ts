/** Why an attacked payout is held. */
export type Reason =
  | 'unsigned'
  | 'fields'
  | 'wrong_audience'
  | 'no_audience'
  | 'unknown_key'
  | 'wrong_role'
  | 'revoked_key'
  | 'key_not_valid'
  | 'bad_signature'
  | 'issued_in_future'
  | 'expired'
  | 'lifetime'
  | 'before_birth'
  | 'forgotten'
  | 'sent_before';

/** That a payout is held, why, and whether there is an event `tampering` for it. */
export interface Held {
  readonly held: Reason;
  readonly isTampering: boolean;
}
