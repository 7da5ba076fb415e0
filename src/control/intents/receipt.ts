import { keyNameField } from '../../base/fields.js';
import type { StoredReceipt, StoredSignature } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import type { KeyFinder, KeyringKey } from '../keys/keyring.js';
import { inTime, SIGN_WITHIN_MS } from '../keys/signer.js';
import type { Signing } from './intent-signer.js';
import { hashIntent, intentOf, type SignedFields } from './intent.js';
import { formatStatement, StatementError, tryFormat } from './statement.js';
import { verifyIntent } from './verify-intent.js';
import { checkSignature } from './verify-signature.js';

/**
 * A worker's statement of a payout's final state: only a worker of the keyring can sign it. `intent`, `gatewayId` and
 * `txhash` are empty if the payout has none.
 */
export interface Receipt extends Pick<StoredReceipt, 'audience' | 'at'> {
  readonly payoutId: string;
  readonly intent: string;
  readonly state: string;
  readonly attempt: number;
  readonly gatewayId: string;
  readonly txhash: string;
}

/** The states that a worker signs: how the payment itself ended. The others are an operator's or the application's word. */
const RECEIPT_STATES = ['completed', 'failed'] as const;
type ReceiptState = (typeof RECEIPT_STATES)[number];

function hasReceipt(state: string): state is ReceiptState {
  return (RECEIPT_STATES as readonly string[]).includes(state);
}

export interface PaidPayout extends SignedFields {
  readonly attempt: number;
  readonly gatewayId?: string | undefined;
  /** As the gateway told it with the state, not as Redis had it before: the worker signs only its own findings. */
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
    ['gatewayId', receipt.gatewayId],
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
  const { payoutId, attempt, gatewayId = '', txhash = '', signed } = payout;
  const intent = signed === undefined ? '' : hashIntent(intentOf(platformId, payout, signed));
  return { audience, payoutId, intent, state, attempt, gatewayId, txhash, at };
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
  const text = tryFormat(() => formatReceipt(platformId, receiptOf(platformId, payout, state, receipt)));
  if (text instanceof StatementError) return refuse(`a field was altered: ${text.message}`);
  const found = checkSignature(text, receipt, 'worker', keyring, 'it: its receipt, or a field, was altered');
  return 'key' in found ? { kind: 'verified', signer: found.key } : refuse(found.message);
}

function refuse(message: string): { readonly kind: 'refused'; readonly message: string } {
  return { kind: 'refused', message };
}

export type ReceiptResult =
  | { readonly kind: 'signed'; readonly receipt: StoredReceipt }
  /** It signs nothing about such a payout. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The signer gave no signature. */
  | { readonly kind: 'failed'; readonly message: string };

/** How long a final state waits for its receipt, in ms: longer than an agent or a program may take. */
const RECEIPT_WITHIN_MS = 2 * SIGN_WITHIN_MS;

export class ReceiptSigner {
  readonly #signing: Signing & { readonly keyring: KeyFinder | undefined };

  /** Without a keyring the worker sends unsigned payouts too. */
  constructor(signing: Signing & { readonly keyring: KeyFinder | undefined }) {
    this.#signing = signing;
  }

  /**
   * Signs a payout's final state. A worker with a keyring sends only what a producer signed. So it signs nothing about
   * any other payout: its record was altered or forged. It never throws, and never waits for long.
   * @param endedAt - ISO 8601, of a payout that has ended. Without it, now
   */
  async sign(payout: PaidPayout, state: ReceiptState, endedAt?: string): Promise<ReceiptResult> {
    const { signer, platformId, audience, clock } = this.#signing;
    const reason = this.#findReasonAgainst(payout);
    if (reason !== undefined) return refuse(reason);
    const at = endedAt ?? new Date(clock.wallNow()).toISOString();
    const text = tryFormat(() => formatReceipt(platformId, receiptOf(platformId, payout, state, { audience, at })));
    if (text instanceof StatementError) return refuse(text.message);
    try {
      const signature = await inTime('The signer', async () => signer.sign(text), RECEIPT_WITHIN_MS);
      return { kind: 'signed', receipt: { key: signer.name, audience, at, signature } };
    } catch (error) {
      return { kind: 'failed', message: (error as Error).message };
    }
  }

  #findReasonAgainst(payout: PaidPayout): string | undefined {
    const { platformId, keyring } = this.#signing;
    const { signed } = payout;
    if (keyring === undefined) return undefined;
    if (signed === undefined) return 'it is not signed';
    // As of its issue: it was sent in time, and the payment may end after that.
    const verdict = verifyIntent(intentOf(platformId, payout, signed), signed, keyring, Date.parse(signed.issuedAt));
    return verdict.kind === 'refused' ? verdict.message : undefined;
  }
}

export class ReceiptVerifier {
  readonly #platformId: number;
  readonly #keyring: KeyFinder;

  constructor(platformId: number, keyring: KeyFinder) {
    this.#platformId = platformId;
    this.#keyring = keyring;
  }

  verify(payout: Payout): ReceiptVerdict | undefined {
    return hasReceipt(payout.state) ? verifyReceipt(this.#platformId, payout, this.#keyring) : undefined;
  }

  mark<Marked extends Payout>(payout: Marked): Marked {
    const verdict = this.verify(payout);
    return verdict === undefined ? payout : { ...payout, verified: verdict.kind === 'verified' };
  }
}
