import { z } from 'zod';
import { readJson } from '../base/parse-json.js';

/**
 * What control of money keeps in the record of a payout: the signature of its producer, what approvers say, and the receipt of
 * its end. The ledger stores and returns it, and believes none of it: control verifies.
 */

/** A payout's Redis hash. */
type StoredFields = Readonly<Record<string, string>>;

/** What a producer's signature adds to a payout. */
export interface IntentSignature {
  /** The name of the key in the keyring. */
  readonly key: string;
  /** base64url, 86 characters. */
  readonly signature: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly issuedAt: string;
  readonly expiresAt: string;
  /** The person on whose request the producer signed. */
  readonly requestedBy?: string | undefined;
  /** The environment for which it is signed; '' if someone removed it from the record. */
  readonly audience: string;
  /** This process made or verified it, so it may replace another that may still count. Not stored. */
  readonly isVerified?: true;
}

/** What is wrong with a signature if someone altered or forged something; other faults come about in good faith too. */
export const TAMPERING_FAULTS = ['fields', 'wrong_role', 'bad_signature'] as const;

/** A signature as a ledger has it. */
export interface StoredSignature extends IntentSignature {
  /** The text of the payout's metadata: the JSON that was signed, to the byte. */
  readonly metadata?: string | undefined;
}

/** What an approver may say of a payout. */
export const APPROVAL_DECISIONS = ['approve', 'reject', 'unreject'] as const;
/** What an approver says of a payout: that it may be paid, that it must not be, or that the latter no longer holds. */
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

/** What an approval names besides the hash, so that a person reads in the signed text itself what is approved. */
export interface ApprovedPayment {
  readonly paymentId: number;
  readonly amount: string;
  /** '' for none. */
  readonly symbol: string;
  readonly addressTo: string;
}

/**
 * What one person signs about a payout. `approve` is about exactly one intent: this address, amount and currency.
 * `reject` is about the payoutId, and holds until the same person takes it back (`unreject`).
 */
export interface Approval extends Partial<ApprovedPayment> {
  /** The environment for which it is signed. */
  readonly audience: string;
  readonly payoutId: string;
  /** The hash of the intent that was shown ('' if none was verified); of `unreject`, the hash of the rejection. */
  readonly intent: string;
  readonly decision: ApprovalDecision;
  /** One line; '' for none. */
  readonly reason: string;
  /** The name of the key. */
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Only of `approve`: the others do not expire. */
  readonly expiresAt?: string | undefined;
}

/** An approval with its signature: base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign`. */
export interface SignedApproval extends Approval {
  readonly signature: string;
}

/** Far longer than any value; messages show some. */
const value = z.string().max(300);

/** A signed approval as it is stored and sent, in JSON. */
export const signedApprovalSchema = z.strictObject({
  audience: value,
  payoutId: value,
  paymentId: z.int().exactOptional(),
  amount: value.exactOptional(),
  symbol: value.exactOptional(),
  addressTo: value.exactOptional(),
  intent: value,
  decision: z.enum(APPROVAL_DECISIONS),
  reason: value,
  by: value,
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime().exactOptional(),
  signature: z.string().max(4_096),
});

/** A receipt as a payout carries it; what it is over is in the payout itself. */
export interface StoredReceipt {
  /** The environment for which it is signed; '' if someone removed it from the record. */
  readonly audience: string;
  /** The name of the worker's key in the keyring. */
  readonly key: string;
  /** ISO 8601, UTC: when the payout came into the state, as the worker's clock says. */
  readonly at: string;
  /** base64url, 86 characters. */
  readonly signature: string;
}

/** A value of over 64 bytes would make Redis store the whole record at twice its size: a long one takes more fields. */
const LONGEST_VALUE = 64;
const PARTS = ['', 'Rest', 'Rest2', 'Rest3', 'Rest4'] as const;

/** What the record has under a name, in as many fields as it needs: `sig`, `sigRest` and so on. All are ASCII. */
function inParts(name: string, text: string): string[] {
  return PARTS.flatMap((suffix, index) => {
    const part = text.slice(index * LONGEST_VALUE, (index + 1) * LONGEST_VALUE);
    return part === '' ? [] : [`${name}${suffix}`, part];
  });
}

function joinParts(record: StoredFields, name: string): string | undefined {
  return record[name] === undefined ? undefined : PARTS.map((suffix) => record[`${name}${suffix}`] ?? '').join('');
}

export function toSignatureFields({ key, signature, audience, issuedAt, expiresAt }: IntentSignature): string[] {
  return ['key', key, ...inParts('sig', signature), 'iat', issuedAt, 'exp', expiresAt, ...inParts('aud', audience)];
}

export function parseSignature(record: StoredFields): StoredSignature | undefined {
  const { key, iat = '', exp = '', metadata, requestedBy } = record;
  const [signature, audience = ''] = [joinParts(record, 'sig'), joinParts(record, 'aud')];
  if (key === undefined || signature === undefined) return undefined;
  return { key, signature, issuedAt: iat, expiresAt: exp, metadata, requestedBy, audience };
}

/** The receipt as fields: `KEY SIGNATURE AUDIENCE`. Its time is that of the change, which the history has. */
export function toReceiptFields({ key, signature, audience }: StoredReceipt): string[] {
  return inParts('receipt', [key, signature, audience].join(' '));
}

export function parseReceipt(record: StoredFields, at: string): StoredReceipt | undefined {
  const text = joinParts(record, 'receipt');
  if (text === undefined) return undefined;
  const [key = '', signature = '', audience = ''] = text.split(' ');
  return { key, at, signature, audience };
}

/**
 * The field of a record that holds a decision. A key has one approval at most. Every rejection has a field of its own, so
 * no later text takes its place; what takes it back stands in a field named for the rejection.
 * @param hash - of the decision's own statement
 */
export function approvalFieldName({ decision, by, intent }: Approval, hash: string): string {
  if (decision === 'approve') return `approval:${by}`;
  return decision === 'reject' ? `rejection:${hash}` : `unrejection:${intent}:${by}`;
}

const FIELD = /^(approval|rejection|unrejection):/;

/** A decision as the record has it. The same decision is the same text. */
export function toApprovalField(approval: SignedApproval): string {
  const { audience, payoutId, paymentId, amount, symbol, addressTo, intent, decision, reason } = approval;
  const { by, at, expiresAt, signature } = approval;
  const payment = { paymentId, amount, symbol, addressTo };
  return JSON.stringify({ audience, payoutId, ...payment, intent, decision, reason, by, at, expiresAt, signature });
}

/**
 * The decisions of a record, in the order in which they were signed. Anyone may have put them there: what is none, or an
 * approval that names another key than its field, is left out.
 */
export function parseApprovals(record: StoredFields): SignedApproval[] {
  const approvals: SignedApproval[] = [];
  for (const field in record) {
    const [, kind] = FIELD.exec(field) ?? [];
    if (kind === undefined) continue;
    const parsed = signedApprovalSchema.safeParse(readJson(record[field] ?? ''));
    if (!parsed.success) continue;
    const { decision, by } = parsed.data;
    // A rejection counts in whichever field it stands.
    if (decision === 'reject' || field === `approval:${by}` || (kind === 'unrejection' && decision === 'unreject')) {
      approvals.push(parsed.data);
    }
  }
  return approvals.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || (a.by < b.by ? -1 : 1));
}

export interface Spend {
  readonly id: string;
  readonly payoutId: string;
  readonly attempt: number;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  /** The currency that its amount may be in, instead of its own. */
  readonly symbol?: string | undefined;
  readonly signer?: string | undefined;
  /** See {@link BeginSend.inFlightMs}. */
  readonly inFlightMs: number;
  /** With a symbol: the most of its currency that it may be; absent if that was not known. */
  readonly coins?: string | undefined;
  /** Value at its begin, in millionths of a dollar; absent if no rule needed it. */
  readonly usd?: bigint | undefined;
}

/** The spends of a journal or a ledger, in their order. Times are wall clock, ms. */
export type SpendEvent =
  | { readonly kind: 'begun'; readonly spend: Spend; readonly at: number }
  | { readonly kind: 'accepted'; readonly id: string; readonly at: number }
  /** It is proved not to have paid. */
  | { readonly kind: 'unpaid'; readonly id: string };

/** An accepted rate that limits the next ones. */
export interface RateAnchor {
  readonly rate: string;
  readonly at: number;
}
