import { InvalidInputError } from '../../base/errors.js';
import { parseJson } from '../../base/parse-json.js';
import { splitTag } from '../../gateway/wallet.js';

type TextField =
  | 'payoutId'
  | 'paymentId'
  | 'amount'
  | 'addressTo'
  | 'destinationTag'
  | 'symbol'
  | 'reference'
  | 'priority'
  | 'notBefore'
  | 'batch'
  | 'requestedBy'
  | 'metadata';

/** Every field as text, the metadata as JSON. */
export type PayoutTexts = { readonly [Field in TextField]?: string | undefined };

/**
 * Joins address and destination tag. `payoutInputSchema` later refuses a text that should be a number.
 * @throws InvalidInputError if the metadata is not JSON, or a destination tag is given twice
 */
export function parsePayoutTexts(texts: PayoutTexts): Readonly<Record<string, unknown>> {
  // Spreading a hundred thousand rows takes seconds.
  return {
    payoutId: texts.payoutId,
    paymentId: parseInteger(texts.paymentId),
    amount: texts.amount,
    addressTo: joinAddress(texts.addressTo, texts.destinationTag),
    symbol: texts.symbol,
    reference: texts.reference,
    priority: parseInteger(texts.priority),
    notBefore: texts.notBefore,
    batch: texts.batch,
    requestedBy: texts.requestedBy,
    metadata: texts.metadata === undefined ? undefined : parseJson(texts.metadata, 'metadata'),
  };
}

/** Returns other text unchanged, for a schema to refuse. */
export function parseInteger(text: string | undefined): unknown {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : text;
}

function joinAddress(addressTo: string | undefined, destinationTag: string | undefined): string | undefined {
  if (addressTo === undefined || destinationTag === undefined) return addressTo;
  // An XRP X-address may contain a tag. `parsePayout` reports a second one better.
  if (splitTag(addressTo)[1] === undefined) return `${addressTo}:${destinationTag}`;
  throw invalid('destinationTag', `is given twice: addressTo already ends with one (got "${addressTo}")`);
}

function invalid(field: string, message: string): InvalidInputError {
  return new InvalidInputError([{ field, message }]);
}
