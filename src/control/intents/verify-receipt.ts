import { keyNameField } from '../../fields.js';
import type { StoredReceipt } from '../../ledger/control-record.js';
import { judgeAudience } from '../keys/audience.js';
import { isSignedBy, type KeyFinder, type KeyringKey } from '../keys/keyring.js';
import { formatReceipt, receiptOf, type PaidPayout } from './receipt.js';
import { parseStatementTime, StatementError } from './statement.js';

export interface ReceiptedPayout extends PaidPayout {
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
