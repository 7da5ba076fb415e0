import { parseResponse, type RawResponse, type ResponseFields } from './exchange/responses.js';
import type { WithdrawClassification } from './exchange/withdraw-connection.js';
import type { PaymentNames } from './gateway.js';

/** What a dialect reads in a success. */
export interface AcceptedFields {
  /** Undefined if the response names no payment. */
  readonly names: PaymentNames | undefined;
  /** Fields that differ from the request, by the API's names. For a warning only: the money has moved. */
  readonly differing: readonly string[];
}

/**
 * Decides what a response to a withdrawal means; never throws.
 *
 * Both wrong decisions cost money: an operator may repeat a "rejected" payout, and "accepted" ends all doubt. So only a
 * response without contradiction is believed:
 *
 * - `result` 1 that names the payment is accepted at any status but 1xx, 3xx and 408, even 5xx. It can be followed by its
 *   name and is never sent again.
 * - `result` 1 without a name, or a failure with one, is unknown.
 * @param nameFields - the API's fields that name a payment, the one to ask by first
 */
export function classifyWithdrawal(
  raw: RawResponse,
  nameFields: readonly [string, ...string[]],
  parseAccepted: (fields: ResponseFields) => AcceptedFields,
): WithdrawClassification {
  const httpStatus = raw.status;
  const unknown = (reason: string) => ({ outcome: { kind: 'unknown', reason, httpStatus } as const, differing: [] });
  const response = parseResponse(raw);
  switch (response.kind) {
    case 'unclear':
      return unknown(response.reason);
    case 'failed': {
      const { fields, message } = response;
      const named = nameFields.find((name) => !isEmpty(fields[name]));
      if (named !== undefined) return unknown(`the gateway reported a failure together with a ${named}: ${message}`);
      return { outcome: { kind: 'rejected', message, httpStatus }, differing: [] };
    }
    case 'succeeded': {
      const { names, differing } = parseAccepted(response.fields);
      if (names === undefined) return unknown(`the gateway reported success without a usable ${nameFields[0]}`);
      return { outcome: { kind: 'accepted', ...names }, differing };
    }
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (typeof value === 'string' && value.trim() === '');
}
