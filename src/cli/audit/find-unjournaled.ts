import type { BoundKeyring } from '../../control/keys/keyring.js';
import type { Spend } from '../../ledger/spend-event.js';
import { verifyReceipt } from '../../control/intents/verify-receipt.js';
import { isSameTxhash } from '../../fields.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { AuditedRecord } from '../../ledger/read-audited.js';
import type { PayoutState } from '../../ledger/states.js';
import type { Finding } from './finding.js';
import { keysOfThen } from './keys-of-then.js';
import { isJournaled, type JournaledSends } from './journaled-sends.js';

export interface UnjournaledContext {
  readonly platformId: number;
  readonly keyring: BoundKeyring | undefined;
  readonly journaled: JournaledSends;
  /** From when on the journals have every send, wall clock, ms. */
  readonly coveredFrom: number;
}

/** What of a payout of the ledger is not in the journals. */
export type LedgerJudgement =
  | { readonly kind: 'journaled' }
  /** It was sent before the journals begin, as the ledger says. */
  | { readonly kind: 'before' }
  /** Only an operator's word says that it was sent. */
  | { readonly kind: 'on_word' }
  | { readonly kind: 'finding'; readonly finding: Finding };

/** In these, the gateway has answered: a worker had journaled the send. */
const ANSWERED: ReadonlySet<PayoutState> = new Set(['in_progress', 'completed', 'failed', 'rejected']);

const INVENTED =
  'Ask the gateway for it. Where another host sent it, name the folder of its journal with --journal; else somebody has written it into Redis.';

/** Finds what the ledger says was sent, and no journal has. */
export function judgeLedgerPayout(payout: Payout, context: UnjournaledContext): LedgerJudgement {
  const { payoutId, state, attempt } = payout;
  const receipt = judgeReceipt(payout, context);
  if (receipt !== undefined) return { kind: 'finding', finding: receipt };
  if (!ANSWERED.has(state) || isJournaled(context.journaled, payoutId, attempt)) return { kind: 'journaled' };
  if (isSameTxhash(payout.vouchedTxhash, payout.txhash)) return { kind: 'on_word' };
  if (begunAt(payout) < context.coveredFrom) return { kind: 'before' };
  const transaction = payout.txhash === undefined ? '' : `, txhash ${payout.txhash}`;
  const message = `the ledger says ${state}${transaction}, attempt ${attempt}; no journal has that send`;
  return { kind: 'finding', finding: { payoutId, attempt, kind: 'not_in_journal', message, action: INVENTED } };
}

/** A receipt that is there has to hold; one that is missing may be of a worker without a key. */
function judgeReceipt(payout: Payout, { platformId, keyring }: UnjournaledContext): Finding | undefined {
  const isSigned = payout.state === 'completed' || payout.state === 'failed';
  if (!isSigned || payout.receipt === undefined || keyring === undefined) return undefined;
  const verdict = verifyReceipt(platformId, payout, keysOfThen(keyring));
  if (verdict.kind === 'verified') return undefined;
  const { payoutId, attempt } = payout;
  const action = 'Book the payment only once the gateway has confirmed it.';
  return { payoutId, attempt, kind: 'receipt', message: `its receipt does not count: ${verdict.message}`, action };
}

/** NaN where the history does not say: no time is before that. */
function begunAt({ history, createdAt }: Payout): number {
  return Date.parse(history.findLast(({ to }) => to === 'sending')?.at ?? createdAt);
}

const FORGED_SPEND =
  'Nothing was paid by it, but a window of the policy counts it. Somebody has written to Redis: the journal counts as well, so no cap is passed.';

/** A spend of the ledger that neither a journal nor the payout's record has. */
export function judgeSpend({ payoutId, attempt, id }: Spend, found: AuditedRecord): Finding | undefined {
  const token = id.split(' ').at(-1) ?? '';
  if (found.kind === 'removed' || (found.kind === 'payout' && found.attempts.knows({ attempt, token })))
    return undefined;
  const message = `a policy's window counts attempt ${attempt}, which neither the journal nor its record has`;
  return { payoutId, attempt, kind: 'spend', message, action: FORGED_SPEND };
}

/** A spend that counts another payment than the one that was sent. */
export function compareSpend({ payoutId, attempt, request }: JournalEntry, spend: Spend): Finding | undefined {
  const differing = (['paymentId', 'amount', 'addressTo'] as const).filter((field) => request[field] !== spend[field]);
  if (differing.length === 0) return undefined;
  const message = `a policy's window counts ${differing.map((field) => `${field} ${String(spend[field])} instead of ${String(request[field])}`).join(', ')}`;
  return { payoutId, attempt, kind: 'spend', message, action: FORGED_SPEND };
}
