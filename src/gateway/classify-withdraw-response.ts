import { txhashField } from '../fields.js';
import { readAnswer, type AnswerFields, type RawAnswer } from './response.js';
import { isSameAddress } from './compare-payment.js';
import { readDecimal } from './plain-decimal.js';
import type { WithdrawRequest } from './withdraw-gateway.js';

/** What a whole answer to `/withdraw` means. Never "not sent": there is an answer. */
export type WithdrawVerdict =
  | { readonly kind: 'accepted'; readonly txhash: string; readonly fields: AnswerFields }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/**
 * Decides what an answer to `/withdraw` means; never throws.
 *
 * Both wrong decisions cost money: "rejected" lets a person send it again, "accepted" ends the watch for it. So only
 * an answer that contradicts itself in nothing is believed:
 *
 * - `result` 1 with a usable txhash is accepted at any HTTP status, 5xx as well: it can then be followed by its
 *   txhash, and is never sent again.
 * - `result` 1 without one is unknown.
 * - a failure that nevertheless carries a txhash is unknown.
 */
export function classifyWithdrawAnswer(raw: RawAnswer): WithdrawVerdict {
  const answer = readAnswer(raw);
  switch (answer.kind) {
    case 'unclear':
      return { kind: 'unknown', reason: answer.reason };
    case 'failed':
      if (isEmpty(answer.fields['txhash'])) return { kind: 'rejected', message: answer.message };
      return { kind: 'unknown', reason: `the gateway reported a failure together with a txhash: ${answer.message}` };
    case 'succeeded': {
      const txhash = txhashField.safeParse(answer.fields['txhash']);
      if (txhash.success) return { kind: 'accepted', txhash: txhash.data, fields: answer.fields };
      return { kind: 'unknown', reason: 'the gateway reported success without a usable txhash' };
    }
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (typeof value === 'string' && value.trim() === '');
}

/**
 * The fields of a success that are not what was asked for. Nothing but the txhash counts once money has moved, so this
 * is for a warning only. A field that is not there is no difference.
 * @returns the names under which the API document has them
 */
export function differingFields(fields: AnswerFields, request: WithdrawRequest): string[] {
  const differing: string[] = [];
  const differs = (answered: unknown, asked: string) =>
    answered !== undefined && answered !== null && answered !== asked;
  if (differs(readDecimal(fields['payment_id']) ?? fields['payment_id'], String(request.paymentId))) {
    differing.push('payment_id');
  }
  if (differs(readDecimal(fields['amount']) ?? fields['amount'], request.amount)) differing.push('amount');
  const address = fields['address_to'];
  const isSame = typeof address === 'string' && isSameAddress(address, request.addressTo);
  if (!isSame && differs(address, request.addressTo)) differing.push('address_to');
  return differing;
}
