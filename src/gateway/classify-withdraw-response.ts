import { ENDPOINTS } from './endpoints.js';
import { parseResponse, type RawResponse } from './response.js';
import type { SentOutcome, WithdrawRequest } from './withdraw-gateway.js';

export interface WithdrawClassification {
  readonly outcome: SentOutcome;
  /** The API's names of fields in which an acceptance differs from the request. */
  readonly differing: readonly string[];
}

/**
 * Decides what a response to `/withdraw` means; never throws.
 *
 * Both wrong decisions cost money: an operator may repeat a "rejected" payout, and "accepted" ends all doubt. So only a
 * response without contradiction is believed:
 *
 * - `result` 1 with a usable txhash is accepted at any status but 1xx, 3xx and 408, even 5xx. It can be followed by its
 *   txhash and is never sent again.
 * - `result` 1 without a txhash, or a failure with one, is unknown.
 */
export function classifyWithdrawResponse(raw: RawResponse, request: WithdrawRequest): WithdrawClassification {
  const httpStatus = raw.status;
  const unknown = (reason: string) => ({ outcome: { kind: 'unknown', reason, httpStatus } as const, differing: [] });
  const response = parseResponse(raw);
  switch (response.kind) {
    case 'unclear':
      return unknown(response.reason);
    case 'failed': {
      const { fields, message } = response;
      if (!isEmpty(fields['txhash']))
        return unknown(`the gateway reported a failure together with a txhash: ${message}`);
      return { outcome: { kind: 'rejected', message, httpStatus }, differing: [] };
    }
    case 'succeeded': {
      const { txhash, differing } = ENDPOINTS.withdraw.parseResult(response.fields, request);
      if (txhash === undefined) return unknown('the gateway reported success without a usable txhash');
      return { outcome: { kind: 'accepted', txhash }, differing };
    }
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (typeof value === 'string' && value.trim() === '');
}
