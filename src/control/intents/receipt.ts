import { keyNameField } from '../../base/fields.js';
import type { StoredReceipt, StoredSignature } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import { judgeAudience } from '../keys/audience.js';
import { isSignedBy, type KeyFinder, type KeyringKey } from '../keys/keyring.js';
import { hashIntent, intentOf, type SignedFields } from './intent.js';
import { formatStatement, parseStatementTime, StatementError } from './statement.js';

/**
 * A worker's statement of a payout's final state: only a worker of the keyring can sign it. Times are ISO 8601, UTC.
 */
export interface Receipt {
  /** Undefined in version 1, which had no such line. */
  readonly audience?: string | undefined;
  readonly payoutId: string;
  /** Empty if the payout has none. */
  readonly intent: string;
  readonly state: string;
  readonly attempt: number;
  readonly txhash: string;
  readonly at: string;
}

/** The states that a worker signs: how the payment itself ended. The others are an operator's or the application's word. */
const RECEIPT_STATES = ['completed', 'failed'] as const;
export type ReceiptState = (typeof RECEIPT_STATES)[number];

function hasReceipt(state: string): state is ReceiptState {
  return (RECEIPT_STATES as readonly string[]).includes(state);
}

export interface PaidPayout extends SignedFields {
  readonly attempt: number;
  readonly txhash?: string | undefined;
  readonly signed?: StoredSignature | undefined;
}

export function formatReceipt(platformId: number, receipt: Receipt): string {
  return formatStatement('receipt', receipt.audience, [
    ['platformId', String(platformId)],
    ['payoutId', receipt.payoutId],
    ['intent', receipt.intent],
    ['state', receipt.state],
    ['attempt', String(receipt.attempt)],
    ['txhash', receipt.txhash],
    ['at', receipt.at],
  ]);
}

export function receiptOf(
  platformId: number,
  payout: PaidPayout,
  state: string,
  { audience, at }: Pick<StoredReceipt, 'audience' | 'at'>,
): Receipt {
  const { payoutId, attempt, txhash = '', signed } = payout;
  const intent = signed === undefined ? '' : hashIntent(intentOf(platformId, payout, signed));
  return { audience, payoutId, intent, state, attempt, txhash, at };
}

interface ReceiptedPayout extends PaidPayout {
  readonly state: string;
  readonly receipt?: StoredReceipt | undefined;
}

export type ReceiptVerdict =
  { readonly kind: 'verified'; readonly signer: KeyringKey } | { readonly kind: 'refused'; readonly message: string };

export function verifyReceipt(platformId: number, payout: ReceiptedPayout, keyring: KeyFinder): ReceiptVerdict {
  const { receipt, state } = payout;
  if (receipt === undefined) return refuse('no worker signed it');
  // Messages name the key, so an invalid name is not shown.
  if (!keyNameField.safeParse(receipt.key).success) return refuse('the name of the key in its receipt was altered');
  const signer = keyring.find(receipt.key);
  if (signer === undefined) return refuse(`the key "${receipt.key}" of its receipt is not in the keyring`);
  const fault = judgeSigner(signer, parseStatementTime(receipt.at));
  if (fault !== undefined) return refuse(fault);
  const strange = judgeAudience(receipt.audience, keyring);
  if (strange !== undefined) return refuse(`of its receipt, ${strange.message}`);
  const text = formatOrNot(platformId, payout, state, receipt);
  return text !== undefined && isSignedBy(signer, text, receipt.signature)
    ? { kind: 'verified', signer }
    : refuse(`the signature of key "${receipt.key}" is not over it: its receipt, or a field, was altered`);
}

function judgeSigner({ name, role, revoked, ...validity }: KeyringKey, at: number): string | undefined {
  const { notBefore = -Infinity, notAfter = Infinity } = validity;
  if (role !== 'worker') return `the key "${name}" of its receipt has the role ${role}, not worker`;
  if (revoked) return `the key "${name}" of its receipt is revoked`;
  // Not `<`: an invalid time (NaN) is not inside.
  if (!(at >= notBefore && at <= notAfter)) return `its receipt was signed outside the time of the key "${name}"`;
  return undefined;
}

/** An altered payout may have a value that is not one line. */
function formatOrNot(
  platformId: number,
  payout: PaidPayout,
  state: string,
  receipt: StoredReceipt,
): string | undefined {
  try {
    return formatReceipt(platformId, receiptOf(platformId, payout, state, receipt));
  } catch (error) {
    if (error instanceof StatementError) return undefined;
    throw error;
  }
}

function refuse(message: string): ReceiptVerdict {
  return { kind: 'refused', message };
}

export class ReceiptVerifier {
  readonly #platformId: number;
  readonly #keyring: KeyFinder;

  constructor(platformId: number, keyring: KeyFinder) {
    this.#platformId = platformId;
    this.#keyring = keyring;
  }

  /** undefined for states that no worker signs. */
  judge(payout: Payout): ReceiptVerdict | undefined {
    return hasReceipt(payout.state) ? verifyReceipt(this.#platformId, payout, this.#keyring) : undefined;
  }

  mark<Marked extends Payout>(payout: Marked): Marked {
    const verdict = this.judge(payout);
    return verdict === undefined ? payout : { ...payout, verified: verdict.kind === 'verified' };
  }
}
