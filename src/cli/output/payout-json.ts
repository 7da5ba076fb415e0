import type { Payout } from '../../ledger/payout.js';

/** A payout as `--json` shows it: who signed it and until when, without the signature. */
export function toPayoutJson({ signed, ...payout }: Payout): object {
  if (signed === undefined) return payout;
  const { key: signedBy, issuedAt, expiresAt } = signed;
  return { ...payout, signedBy, issuedAt, expiresAt };
}
