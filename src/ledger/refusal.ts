import { isPayoutState, type PayoutState } from './states.js';

/** Why a script changed nothing: the one place that knows what their negative numbers mean. */
export type Refusal =
  | { readonly kind: 'lease_lost' }
  | { readonly kind: 'other_ledger'; readonly ledgerId: string }
  | { readonly kind: 'sends_differ'; readonly sends: number }
  | { readonly kind: 'paused'; readonly reason: string }
  | { readonly kind: 'others_sending'; readonly payoutIds: readonly string[] }
  | { readonly kind: 'wrong_state'; readonly state: PayoutState | undefined; readonly attempt: number }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'txhash_taken'; readonly payoutId: string };

/**
 * Reads what a script returned.
 * @returns the refusal, or undefined when the script did its work
 */
export function readRefusal(reply: unknown): Refusal | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [code, ...rest] = reply as unknown[];
  if (typeof code !== 'number' || code >= 0) return undefined;
  const details = rest.map(String);
  const [first = '', second = ''] = details;
  switch (code) {
    case -1:
      return { kind: 'lease_lost' };
    case -2:
      return { kind: 'other_ledger', ledgerId: first };
    case -3:
      return { kind: 'sends_differ', sends: Number(first) };
    case -4:
      return { kind: 'paused', reason: first };
    case -5:
      return { kind: 'others_sending', payoutIds: details };
    case -6:
      return { kind: 'wrong_state', state: isPayoutState(first) ? first : undefined, attempt: Number(second) };
    case -7:
      return { kind: 'not_found' };
    case -8:
      return { kind: 'txhash_taken', payoutId: first };
    default:
      throw new Error(`A ledger script returned ${code}, which has no meaning`);
  }
}
