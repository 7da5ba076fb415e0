import { z } from 'zod';
import { readJsonObject } from '../base/parse-json.js';
import {
  amountField,
  audienceField,
  keyNameField,
  parseInput,
  payoutIdField,
  personField,
  toProblem,
  wholeNumberField,
} from '../base/fields.js';
import { addressToField, paymentIdField, symbolField } from '../gateway/gateway.js';
import type { IntentSignature, SignedApproval, StoredReceipt, StoredSignature } from './control-record.js';
import type { OrderLookUp } from './order-look-up.js';
import { isFinal, type PayoutState } from './states.js';

/** The signature of a payout signed before it is enqueued, as `payouts keys sign` adds it to its fields. */

/** 64 bytes as base64url without padding. The last character's four spare bits must be 0, so there is one text only. */
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** Another text of the same time would be another signed text. */
const timeField = z
  .string({ error: 'must be a string' })
  .refine(isIsoTime, 'must be a time with milliseconds, in UTC, such as 2030-01-31T09:00:00.000Z');

const signatureFields = {
  /** If the payout was signed before: the name of the key. */
  key: keyNameField.optional(),
  /** The signature, 86 characters of base64url. */
  signature: z
    .string({ error: 'must be a string' })
    .regex(SIGNATURE, 'must be an Ed25519 signature: 86 characters of base64url')
    .optional(),
  /** When it was signed, such as `2030-01-31T09:00:00.000Z`. */
  issuedAt: timeField.optional(),
  /** Its end, in the same form. */
  expiresAt: timeField.optional(),
  /** The environment for which it was signed. */
  audience: audienceField.optional(),
};

function isIsoTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
}

interface SignatureInput {
  readonly key?: string | undefined;
  readonly signature?: string | undefined;
  readonly issuedAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly audience?: string | undefined;
  readonly notBefore?: string | undefined;
  readonly requestedBy?: string | undefined;
}

const FIELDS = ['key', 'signature', 'issuedAt', 'expiresAt', 'audience'] as const;

/** The rules between fields: a signature is complete, and valid at a time at which the payout may be sent. */
function addSignatureProblems(input: SignatureInput, context: z.RefinementCtx): void {
  const missing = FIELDS.filter((field) => input[field] === undefined);
  if (missing.length === FIELDS.length) return;
  for (const field of missing) {
    const message = `is missing: of a signed payout ${FIELDS.join(', ')} are all given; of any other, none`;
    context.addIssue({ code: 'custom', path: [field], message });
  }
  if (missing.length > 0) return;
  const { notBefore, issuedAt = '', expiresAt = '' } = input;
  const expires = Date.parse(expiresAt);
  if (expires <= Date.parse(issuedAt)) {
    context.addIssue({ code: 'custom', path: ['expiresAt'], message: 'must be after issuedAt', input: expiresAt });
  }
  if (notBefore !== undefined && Date.parse(notBefore) >= expires) {
    const message = `must be before expiresAt (${expiresAt}): the signature would have ended. Sign the payout later`;
    context.addIssue({ code: 'custom', path: ['notBefore'], message, input: notBefore });
  }
}

/** Moves the signature into a field of its own; an unsigned payout is returned as it is. */
function takeSignature<Input extends SignatureInput>(
  input: Input,
): Omit<Input, keyof typeof signatureFields> & { readonly signed?: IntentSignature } {
  const { key, signature, issuedAt, expiresAt, audience, ...payout } = input;
  if (key === undefined || signature === undefined || issuedAt === undefined) return payout;
  if (expiresAt === undefined || audience === undefined) return payout;
  const { requestedBy } = input;
  return { ...payout, signed: { key, signature, issuedAt, expiresAt, audience, ...(requestedBy && { requestedBy }) } };
}

/** BullMQ's highest priority number, which is its least urgent. */
const LOWEST_PRIORITY = 2_097_152;
const MAX_METADATA_BYTES = 4_096;
const MAX_LINE_LENGTH = 200;

/** One line of free text, because it is stored with tabs as separators and shown in tables. */
export const lineField = z
  .string({ error: 'must be a string' })
  .trim()
  .min(1, 'must not be empty')
  .max(MAX_LINE_LENGTH, `must have at most ${MAX_LINE_LENGTH} characters`)
  .refine((text) => !/[\p{Cc}\u2028\u2029]/u.test(text), 'must be one line without control characters')
  .refine((text) => text.isWellFormed(), 'must be well-formed Unicode, without lone surrogates');

export const batchField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Za-z0-9+/=\-.,_]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 + / = - . , _');

const notBeforeField = z
  .union([z.date(), z.iso.datetime({ offset: true }).transform((text) => new Date(text))], {
    error: 'must be a Date or a time such as 2030-01-31T09:00:00Z',
  })
  // Texts of one length are in the order of time.
  .refine((date) => date.getTime() < Date.UTC(10_000, 0) && date.getTime() >= 0, 'must be between 1970 and 9999')
  .transform((date) => date.toISOString());

const jsonField = z.json();

const metadataField = z
  // z.json's own error is always a plain "Invalid input".
  .custom<z.output<typeof jsonField>>((value) => jsonField.safeParse(value).success, 'must be JSON')
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= MAX_METADATA_BYTES,
    `must be at most ${MAX_METADATA_BYTES} bytes as JSON`,
  );

/** 1 is the most urgent. */
export const priorityField = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(LOWEST_PRIORITY, `must be at most ${LOWEST_PRIORITY}`);

/** A payout, without its signature. */
const payoutFields = z.strictObject({
  /** The caller's own key, 1 to 64 of `A-Z a-z 0-9 + / = - : . , _`. The same payoutId is the same payout forever. */
  payoutId: payoutIdField,
  /** The currency id of the gateway. */
  paymentId: paymentIdField,
  /** A decimal string, such as `"12.5"`. */
  amount: amountField,
  /** The recipient's wallet; for Ripple XRP and the TON network `address:destinationTag`. */
  addressTo: addressToField,
  /** A currency such as `USD`, which the amount may then be in: see docs/gateway-api-v1.md#payouts-with-a-symbol. */
  symbol: symbolField.optional(),
  /** 1 is the most urgent. Payouts without a priority go first, in the order of arrival. */
  priority: priorityField.optional(),
  /** Do not send before this time. */
  notBefore: notBeforeField.optional(),
  /** A line for operators, such as an invoice number. */
  reference: lineField.optional(),
  /** The caller's own JSON, at most 4096 bytes. */
  metadata: metadataField.optional(),
  /** The name of a group of payouts that can be listed and counted together. */
  batch: batchField.optional(),
  /** The person who requested it, as named in the keyring. Part of the signature, if payouts are signed. */
  requestedBy: personField.optional(),
});

/** A payout's fields, valid and in the form in which they are stored and signed. */
export type ValidPayout = z.output<typeof payoutFields>;

/** A payout for the ledger, signed if the producer has a key. */
export type NewPayout = ValidPayout & { readonly signed?: IntentSignature | undefined };

/** An application's input; `key`, `signature`, `issuedAt` and `expiresAt` if it was signed before. */
export const payoutInputSchema = payoutFields
  .extend(signatureFields)
  .superRefine(addSignatureProblems)
  .transform((input): NewPayout => takeSignature(input));

/** What an application gives to enqueue a payout. */
export type PayoutInput = z.input<typeof payoutInputSchema>;

/** One change in the life of a payout. */
export interface HistoryEntry {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** The state before; absent for the first entry. */
  readonly from?: PayoutState;
  readonly to: PayoutState;
  /** Who made the change, if it was an operator. */
  readonly by?: string;
  readonly reason?: string;
}

/** What a person wrote about a payout, such as "I am on it". It decides nothing: anyone with access to Redis may have written it. */
export interface PayoutComment {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Who it says wrote it. */
  readonly by: string;
  /** One line. */
  readonly text: string;
}

/** Why a payout is held. */
export interface HeldFor {
  /** Which check holds it. */
  readonly kind: 'signature' | 'journal' | 'rejection' | 'policy' | 'person';
  /** A word for programs, such as `expired`. */
  readonly reason: string;
  /** For operators: what is wrong, and what to do about it. */
  readonly message: string;
  /** The policy rule that holds it; `reason` is then its verdict: `refuse`, `approve` or `wait`. */
  readonly rule?: string | undefined;
  /** When the rule should let it pass by itself: ISO 8601, UTC. */
  readonly until?: string | undefined;
  /** The approvals that are missing. */
  readonly needs?: MissingApprovals | undefined;
}

/** Whose approval is missing. */
export interface MissingApprovals {
  /** The group, as the policy names it. */
  readonly by: string;
  /** How many more of its people must approve. */
  readonly persons: number;
}

/** A payout as the ledger has it. */
export interface Payout extends Omit<ValidPayout, 'notBefore'> {
  readonly state: PayoutState;
  /**
   * The queue does nothing more with it. Two proofs still correct it, each with an event: an adoption of a ledger that
   * forgot a send (`unknown` or `in_progress`), and `late_payment`.
   */
  readonly final: boolean;
  readonly notBefore?: string | undefined;
  /** How many times a send was begun. */
  readonly attempt: number;
  /** How many times an operator requeued it. */
  readonly requeueCount: number;
  /** What its payment is called at the gateway: it is polled by this, and no two payouts share it. */
  readonly gatewayId?: string;
  /** The transaction on the chain, once the gateway has told it. Several payouts may share one. */
  readonly txhash?: string;
  /** The `gatewayId` that an operator gave for it (`payouts resolve --sent`). */
  readonly vouchedGatewayId?: string;
  /** The fee that the gateway named, a decimal string. */
  readonly fee?: string;
  /** The last attempt's message from the gateway or the worker. */
  readonly message?: string;
  /** Why it is not sent; only while it is `held`. */
  readonly held?: HeldFor;
  /**
   * A payment proved too late, by its `gatewayId`: after the payout was written off, or while another attempt is sent or
   * paid. It may have been paid twice.
   */
  readonly lateGatewayId?: string;
  /** The transaction of that payment, if the gateway told it. */
  readonly lateTxhash?: string;
  /**
   * If it is `unknown`: until when the last request may still arrive at the gateway, ISO. Until then what the gateway says of
   * it proves nothing.
   */
  readonly inFlightUntil?: string;
  /**
   * How the worker has asked the gateway for it by its order ids, since it was `unknown`; absent if it never has. That
   * the gateway does not know an order id is no evidence that nothing was paid.
   */
  readonly lookUp?: OrderLookUp;
  /** The producer's signature; absent if unsigned. A worker with a keyring sends nothing without one. */
  readonly signed?: StoredSignature;
  /** The signed act with which an operator requeued it, as JSON. */
  readonly act?: string;
  /** Approvers' decisions, absent for most. Anyone with access to Redis may have stored them: verify each. */
  readonly approvals?: readonly SignedApproval[];
  /** How many different approvals and rejections were ever stored, including replaced ones; absent for none. */
  readonly decisions?: number;
  /** The worker's signature over the state; only of `completed` and `failed`, if the worker has a key. */
  readonly receipt?: StoredReceipt;
  /**
   * Whether the receipt is by a worker of the keyring, over this payout's signed data, state, attempt, gatewayId and
   * txhash. Only for `completed` and `failed`, and only with a keyring.
   */
  readonly verified?: boolean;
  /** What people wrote about it, the oldest first; absent for most. */
  readonly comments?: readonly PayoutComment[];
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC: when it entered its present state. */
  readonly updatedAt: string;
  readonly history: readonly HistoryEntry[];
}

/** The gatewayId for people, who need not read it twice: undefined if it is the txhash. */
export function shownGatewayId({
  gatewayId,
  txhash,
}: Pick<Payout, 'gatewayId'> & { readonly txhash?: string | undefined }) {
  return gatewayId === txhash ? undefined : gatewayId;
}

/**
 * How long the state of an entry lasted, or has lasted, in ms; undefined for a final one, which lasts for good.
 * @param index - of the entry in the history
 * @param wallNow - wall clock, ms
 */
export function lastedMs(history: readonly HistoryEntry[], index: number, wallNow: number): number | undefined {
  const [entry, next] = history.slice(index, index + 2);
  if (entry === undefined || (next === undefined && isFinal(entry.to))) return undefined;
  return Math.max(0, (next === undefined ? wallNow : Date.parse(next.at)) - Date.parse(entry.at));
}

/** The ledger's scripts begin no attempt beyond it. */
const MAX_ATTEMPTS = 100_000;

/** These fields decide whether a payout can be sent at all; the others decide about order and display. */
const sendableFields = payoutFields
  .pick({ payoutId: true, paymentId: true, amount: true, addressTo: true, symbol: true })
  .extend({ attempt: wholeNumberField(0, MAX_ATTEMPTS - 1) });

/**
 * Why a stored payout can never be sent, signed or not: the gateway or the ledger refuses it, and no `enqueue` accepts
 * it.
 * @returns undefined if it can be sent
 */
export function findFault({ payoutId, paymentId, amount, addressTo, symbol, attempt }: Payout): string | undefined {
  const fields = { payoutId, paymentId, amount, addressTo, symbol, attempt };
  const fault = sendableFields
    .safeParse(fields, { reportInput: true })
    .error?.issues.map((issue) => toProblem(issue))[0];
  return fault && `${fault.field}: ${fault.message}`;
}

/** The message to show now: why it is held, else its own. */
export function lastMessage({ held, message }: Pick<Payout, 'held' | 'message'>): string | undefined {
  return held?.message ?? message;
}

const MAX_STORED_LINE_LENGTH = 300;

/** Outside text as one line to store and show: control characters become spaces, and it is cut short. */
export function toLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim();
  return line.length <= MAX_STORED_LINE_LENGTH ? line : `${line.slice(0, MAX_STORED_LINE_LENGTH - 1)}…`;
}

export interface Hold extends HeldFor {
  /** Someone altered data in Redis: the account then gets an event `tampering`. */
  readonly isTampering: boolean;
}

/** An unreadable field still holds the payout. */
const heldSchema = z.object({
  kind: z.enum(['signature', 'journal', 'rejection', 'policy', 'person']).catch('signature'),
  reason: z.string().catch('unreadable'),
  message: z.string().catch('why it is held cannot be read: someone has altered its record in Redis'),
  rule: z.string().optional().catch(undefined),
  until: z.string().optional().catch(undefined),
  needs: z.object({ by: z.string(), persons: z.number() }).optional().catch(undefined),
});

export function toHeldField({ kind, reason, message, isTampering, rule, until, needs }: Hold): string {
  return JSON.stringify({ kind, reason: toLine(reason), message: toLine(message), isTampering, rule, until, needs });
}

export function parseHeldField(text: string): HeldFor {
  return heldSchema.parse(readJsonObject(text));
}

/** Who decided, and why: recorded with every change by an operator. */
export interface Actor {
  /** A name, one line. */
  readonly by: string;
  /** One line, such as the number of a support ticket. */
  readonly reason: string;
}

/** Our own placeholder. */
const reasonField = lineField.refine((text) => !/^\W*why\W*$/i.test(text), {
  error: 'must be your own: WHY only stands for it in the commands that are shown',
});

const actorSchema = z.object({ by: lineField, reason: reasonField });

const askedSchema = z.object({ payoutId: z.string({ error: 'must be a string' }) });

/** Any string may be asked for: an impossible id names no payout. @throws InvalidInputError */
export function requirePayoutId(payoutId: string): string {
  return parseInput(askedSchema, { payoutId }).payoutId;
}

/** @throws InvalidInputError */
export function parseActor(actor: Actor): Actor {
  const { by, reason } = parseInput(z.looseObject({}), actor, 'actor', '{ by, reason }');
  return parseInput(actorSchema, { by, reason });
}
