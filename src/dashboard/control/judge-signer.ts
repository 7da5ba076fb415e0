import { intentOf } from '../../control/intents/signed-payout.js';
import { verifyIntent } from '../../control/intents/verify-intent.js';
import type { Payout } from '../../ledger/payout.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';

/** Who signed a payout, as far as this dashboard can tell. */
export type SignerView =
  | { readonly kind: 'unsigned' }
  /** Without a keyring nobody knows. */
  | { readonly kind: 'unjudged'; readonly key: string }
  | { readonly kind: 'verified'; readonly key: string; readonly person: string }
  | { readonly kind: 'refused'; readonly key: string; readonly message: string };

/** @param view - undefined where the dashboard has no keyring */
export function judgeSigner(payout: Payout, view: ApprovalView | undefined): SignerView {
  const { signed } = payout;
  if (signed === undefined) return { kind: 'unsigned' };
  const { key } = signed;
  if (view === undefined) return { kind: 'unjudged', key };
  const verdict = verifyIntent(intentOf(view.platformId, payout, signed), signed, view.keyring, view.now);
  if (verdict.kind === 'refused') return { kind: 'refused', key, message: verdict.message };
  return { kind: 'verified', key, person: verdict.signer.person };
}
