import { isPayoutState, type PayoutState } from './states.js';

/** Why a script changed nothing. Only this file knows the meaning of their negative numbers. */
export type ScriptRejection =
  | { readonly kind: 'lease_lost' }
  | { readonly kind: 'other_ledger'; readonly ledgerId: string }
  | { readonly kind: 'sends_differ'; readonly sendCount: number; readonly last: string }
  | { readonly kind: 'paused'; readonly reason: string }
  | { readonly kind: 'objected'; readonly journalId: string; readonly reason: string }
  | { readonly kind: 'others_sending'; readonly payoutIds: readonly string[] }
  | { readonly kind: 'wrong_state'; readonly state: PayoutState | undefined; readonly attempt: number }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'txhash_taken'; readonly payoutId: string }
  /** A request may still be on its way for so long. */
  | { readonly kind: 'in_doubt'; readonly forMs: number }
  /** This attempt was begun after the one that was decided about. */
  | { readonly kind: 'sent_since'; readonly attempt: number }
  /** A late payment was proved: it must not be sent again. */
  | { readonly kind: 'paid_late'; readonly txhash: string }
  /** The key rejected the payout, and cannot approve it any more. */
  | { readonly kind: 'rejected_before'; readonly by: string }
  | { readonly kind: 'too_many_approvals'; readonly count: number }
  /** The ledger lost what was read from it before. */
  | { readonly kind: 'came_back_older' }
  | { readonly kind: 'other_gateway'; readonly audience: string }
  /** The account has, or had, a sender. */
  | { readonly kind: 'not_new'; readonly trace: string };

/** @returns undefined if the script did its work */
export function parseRejection(reply: unknown): ScriptRejection | undefined {
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
      return { kind: 'sends_differ', sendCount: Number(first), last: second };
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
    case -9:
      return { kind: 'objected', journalId: first, reason: second };
    case -11:
      return { kind: 'in_doubt', forMs: Number(first) };
    case -12:
      return { kind: 'sent_since', attempt: Number(first) };
    case -13:
      return { kind: 'paid_late', txhash: first };
    case -14:
      return { kind: 'came_back_older' };
    case -20:
      return { kind: 'rejected_before', by: first };
    case -21:
      return { kind: 'too_many_approvals', count: Number(first) };
    case -22:
      return { kind: 'not_new', trace: first };
    case -23:
      return { kind: 'other_gateway', audience: first };
    default:
      throw new Error(`A ledger script returned ${code}, which has no meaning`);
  }
}
