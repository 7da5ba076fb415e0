/** What an operator reads as the reason of a hold, in plain words: for the document. */
export const REASONS = {
  unsigned: 'it is not signed',
  fields: 'a field has a form that no payout has',
  wrong_audience: 'it is signed for another environment',
  no_audience: 'it is signed for no environment',
  unknown_key: 'the key is not in the keyring',
  wrong_role: "the key is no producer's",
  revoked_key: 'the key is revoked',
  key_not_valid: 'the key was not valid when it signed',
  bad_signature: 'the signature is not over this payout',
  issued_in_future: 'it was signed in the future',
  expired: 'the signature has expired',
  lifetime: 'the signature would hold for too long',
  before_birth: 'it was signed before the journal began',
  forgotten: 'the journal has forgotten the sends of that time',
  sent_before: 'the journal has it as sent',
} as const;

/** The word that a hold has. */
export type Reason = keyof typeof REASONS;

/** What came of an attack: a row of the document. */
export interface ToldAttack {
  readonly name: string;
  /** In what state the payout was when the attacker came, where that is one. */
  readonly from?: string;
  readonly what: string;
}

/** That a payout is held, why, and whether an event `tampering` tells of it. */
export interface Held {
  readonly held: Reason;
  readonly isTampering: boolean;
}

export function describeHeld({ held: reason, isTampering }: Held): string {
  return `held: ${REASONS[reason]}${isTampering ? '; event tampering' : ''}`;
}

export const STOPS = 'the account stops until an operator has looked';
export const PAID_AS_SIGNED = 'what is signed is paid once; nothing else';
