import { formatCount, formatTimeUtc } from '../base/format.js';
import type { OrderLookUp } from '../ledger/order-look-up.js';
import type { LookUpEvidence } from '../ledger/reads/gateway-facts.js';

const ANSWERS: Readonly<Record<OrderLookUp['answer'], string>> = {
  refused: 'it did not find it',
  failed: 'it gave no answer that can be read',
  other_payment: 'it has another payment',
  found: 'it has the payment',
};

/** How the worker has asked the gateway for a payout by its order ids. */
export function describeLookUp({ answer, message, count, since, at }: OrderLookUp): string {
  const times = `${formatCount(count, 'time')} since ${formatTimeUtc(since)}, last at ${formatTimeUtc(at)}`;
  return `asked for it by order id ${times}: ${ANSWERS[answer]} (${message})`;
}

/**
 * What it means that the gateway does not know an order id. It is never a proof.
 * @returns undefined if the gateway has no order ids
 */
export function describeEvidence({ lookUp, lookUpAt, lookUpMessage }: Partial<LookUpEvidence>): string | undefined {
  const at = lookUpAt === undefined ? '' : ` (${formatTimeUtc(new Date(lookUpAt).toISOString())})`;
  switch (lookUp) {
    case undefined:
      return undefined;
    case 'untested':
      return 'It is not known yet whether the gateway finds payments by order id: that it does not know one says nothing.';
    case 'fails':
      return `The gateway did not find a payment by order id that it had accepted${at}, and said: ${lookUpMessage ?? ''}. That it does not know one says nothing.`;
    case 'works':
      return `The gateway found a payment by order id that it had accepted${at}. That it does not know one is a hint, and no proof.`;
  }
}
