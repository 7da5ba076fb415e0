import { isDeepStrictEqual } from 'node:util';
import { UnreadableRecordError } from '../base/errors.js';
import type { PaymentNames } from '../gateway/gateway.js';
import { parseApprovals, parseReceipt, parseSignature, toSignatureFields } from './control-record.js';
import { parseLookUp } from './order-look-up.js';
import { parseComments } from './payout-comment.js';
import { type HistoryEntry, type NewPayout, parseHeldField, type Payout, type ValidPayout } from './payout.js';
import { isFinal, isPayoutState, type PayoutState, stateOfCode } from './states.js';

/** Short values keep the Redis hash compact. */
export type PayoutRecord = Readonly<Record<string, string>>;

/** Absent fields take no room. */
export function toRecordFields(payout: Omit<NewPayout, 'payoutId'>): string[] {
  const { metadata, signed, requestedBy = signed?.requestedBy, ...plain } = payout;
  const fields: string[] = [];
  for (const [field, value] of Object.entries(plain))
    if (value !== undefined && field !== 'payoutId') fields.push(field, String(value));
  if (metadata !== undefined) fields.push('metadata', JSON.stringify(metadata));
  if (requestedBy !== undefined) fields.push('requestedBy', requestedBy);
  if (signed !== undefined) fields.push(...toSignatureFields(signed));
  return fields;
}

/** A reply of HGETALL inside a script: field, value, field, value, … */
export function pairsToRecord(pairs: readonly string[]): PayoutRecord {
  const record: Record<string, string> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) record[pairs[index] ?? ''] = pairs[index + 1] ?? '';
  return record;
}

/** @throws UnreadableRecordError */
export function parseRecord(payoutId: string, record: PayoutRecord): Payout {
  try {
    return parseFields(payoutId, record);
  } catch (error) {
    throw new UnreadableRecordError(`The record of payout ${payoutId}`, error as Error);
  }
}

function parseFields(payoutId: string, record: PayoutRecord): Payout {
  const state = parseState(record['state'] ?? '');
  const history = parseHistory(record);
  const signed = parseSignature(record);
  const { held } = record;
  const updatedAt = history.at(-1)?.at ?? '';
  const receipt = parseReceipt(record, updatedAt);
  const approvals = parseApprovals(record);
  const lookUp = parseLookUp(record['lookUp']);
  const comments = parseComments(record);
  return {
    payoutId,
    state,
    final: isFinal(state),
    ...parseInputFields(record),
    attempt: Number(record['attempt'] ?? 0),
    requeueCount: Number(record['round'] ?? 0),
    ...pick(record, ['gatewayId', 'vouchedGatewayId', 'fee', 'message', 'lateGatewayId', 'act']),
    ...parseTxhash('txhash', record['gatewayId'], record['txhash']),
    ...parseTxhash('lateTxhash', record['lateGatewayId'], record['lateTxhash']),
    ...(signed === undefined ? {} : { signed }),
    ...(state !== 'held' || held === undefined ? {} : { held: parseHeldField(held) }),
    ...(approvals.length === 0 ? {} : { approvals }),
    ...parseDecisions(record),
    ...(state === 'unknown' && parseInFlight(record)),
    ...(lookUp && { lookUp }),
    ...(receipt === undefined ? {} : { receipt }),
    ...(comments.length === 0 ? {} : { comments }),
    createdAt: history[0]?.at ?? '',
    updatedAt,
    history,
  };
}

function parseInputFields(record: PayoutRecord): Omit<ValidPayout, 'payoutId'> {
  const { priority, metadata } = record;
  return {
    paymentId: parsePaymentId(record),
    amount: record['amount'] ?? '',
    addressTo: record['addressTo'] ?? '',
    ...pick(record, ['symbol', 'reference', 'notBefore', 'batch', 'requestedBy']),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    ...(metadata === undefined ? {} : { metadata: JSON.parse(metadata) as NonNullable<ValidPayout['metadata']> }),
  };
}

/** Of a txhash that is the gatewayId. No transaction is called so, see `isNoTransaction`. */
const SAME = '=';

/** A txhash as a record has it beside its gatewayId: many gateways have one name for both. Empty if it is unknown. */
export function toTxhashField({
  gatewayId,
  txhash = '',
}: Pick<PaymentNames, 'gatewayId'> & { readonly txhash?: string | undefined }): string {
  return txhash === gatewayId ? SAME : txhash;
}

function parseTxhash<Field extends 'txhash' | 'lateTxhash'>(
  field: Field,
  gatewayId: string | undefined,
  stored = '',
): Partial<Record<Field, string>> {
  const txhash = stored === SAME ? gatewayId : stored;
  return (txhash === undefined || txhash === '' ? {} : { [field]: txhash }) as Partial<Record<Field, string>>;
}

/** A text that is not a number never equals what begin-send reads, so its payout would be tried forever. */
function parseDecisions({ decisions }: PayoutRecord): Pick<Payout, 'decisions'> {
  if (decisions === undefined) return {};
  if (!/^\d{1,15}$/.test(decisions)) throw new Error(`decisions must be a whole number (got "${decisions}")`);
  return { decisions: Number(decisions) };
}

function parseInFlight({ inFlightUntil = '' }: PayoutRecord): Pick<Payout, 'inFlightUntil'> {
  return /^\d{1,15}$/.test(inFlightUntil) ? { inFlightUntil: new Date(Number(inFlightUntil)).toISOString() } : {};
}

/** The signature covers the number: a signed payout may have no other text for it. */
function parsePaymentId({ paymentId = '', sig }: PayoutRecord): number {
  const number = Number(paymentId);
  return sig === undefined || String(number) === paymentId ? number : NaN;
}

function pick<Field extends string>(record: PayoutRecord, fields: readonly Field[]): Partial<Record<Field, string>> {
  return Object.fromEntries(
    fields.flatMap((field) => (record[field] === undefined ? [] : [[field, record[field]]])),
  ) as Partial<Record<Field, string>>;
}

function parseHistory(record: PayoutRecord): HistoryEntry[] {
  const history: HistoryEntry[] = [];
  // The scripts need this to move the payout.
  const { n = '', pending = '' } = record;
  if (!/^[1-9]\d{0,14}$/.test(n)) throw new Error(`n must be a whole number of at least 1 (got "${n}")`);
  if (pending !== '') parseState(pending);
  for (let index = 0; index < Number(record['n']); index += 1) {
    const { at, to, by, reason } = parseHistoryEntry(record[`h${index}`] ?? '');
    const from = history.at(-1)?.to;
    history.push({
      at: new Date(at).toISOString(),
      ...(from === undefined ? {} : { from }),
      to: parseState(to),
      ...(by === '' ? {} : { by }),
      ...(reason === '' ? {} : { reason }),
    });
  }
  return history;
}

function parseState(text: string): PayoutState {
  if (!isPayoutState(text)) throw new Error(`there is no state "${text}"`);
  return text;
}

/** The identity of a payout. The batch is not part of it: a second import may name the same payout. */
const IDENTITY_FIELDS = [
  'paymentId',
  'amount',
  'addressTo',
  'symbol',
  'priority',
  'notBefore',
  'reference',
  'metadata',
] as const;

export function differingFields(stored: PayoutRecord, given: ValidPayout): string[] {
  const there = parseInputFields(stored);
  // In the stored form, because JSON has no -0, for example.
  const wanted = parseInputFields(pairsToRecord(toRecordFields(given)));
  return IDENTITY_FIELDS.filter((field) => !isDeepStrictEqual(there[field], wanted[field]));
}

interface StoredHistoryEntry {
  /** Wall clock, ms since 1970; NaN if it is not a number. */
  readonly at: number;
  /** The name of a state, unless someone has altered the record. */
  readonly to: string;
  /** '' for none, like the reason. */
  readonly by: string;
  readonly reason: string;
}

/** The state's code and the time in base 36: `qmwtk3v5j`. */
const CODED = /^([a-z])([0-9a-z]+)$/;

/** An entry is {@link CODED}, then `<tab>by<tab>reason` if there are any. */
export function parseHistoryEntry(text: string): StoredHistoryEntry {
  const [first = '', by = '', reason = ''] = text.split('\t');
  const [, code = '', time = ''] = CODED.exec(first) ?? [];
  return { at: Number.parseInt(time, 36), to: stateOfCode(code) ?? '', by, reason };
}
