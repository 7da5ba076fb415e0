import { ENDPOINTS } from '../../gateway/v2/endpoints.js';
import type { Dialect } from '../dialect.js';
import { isHmac } from '../hmac.js';
import { failed } from '../response.js';
import type { PaymentName } from '../sandbox-account.js';
import { handleCall } from './handle-call.js';
import type { OpenPoints } from './open-points.js';
import { toSigned, type Webhooks } from './webhooks.js';

type Fields = Readonly<Record<string, unknown>>;

/** The second generation (docs/gateway-api-v2.md), which leaves some points open. */
export function createV2(open: OpenPoints, webhooks: Pick<Webhooks, 'paid'>): Dialect {
  return {
    paths: {
      withdraw: ENDPOINTS.withdraw.path,
      transactionstatus: ENDPOINTS.withdrawstatus.path,
      getpaymentwallet: ENDPOINTS.address.path,
      currencies: ENDPOINTS.currencies.path,
      balance: ENDPOINTS.balance.path,
    },
    contentType: 'application/json',
    malformed: 'the body is no JSON object',
    unknownPlatform: 'unknown platformId',
    parse(endpoint, body, headers) {
      const fields = parseObject(body);
      if (fields === undefined) return undefined;
      const { platformId, ...request } = fields;
      const isPlatform = Number.isSafeInteger(platformId) && Number(platformId) > 0;
      const signature = headers['x-signature'];
      return {
        platformId: isPlatform ? Number(platformId) : undefined,
        addressTo: textOf(fields['addressTo']),
        amount: textOf(fields['amount']),
        payment: paymentOf(fields),
        isSignedWith: (secretKey) =>
          typeof signature === 'string' &&
          isHmac(signature, toSigned(String(platformId), encode(fields, body, open.signed), secretKey), secretKey),
        handle: (context) =>
          handleCall(endpoint, request, context, {
            ...open,
            onPaid: (payment) => {
              webhooks.paid(context.account, payment);
            },
          }),
      };
    },
    failed: (endpoint, message) => failed(message, endpoint === 'transactionstatus' ? open.failedStatusCode : 200),
  };
}

function parseObject(body: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function paymentOf({ transactionId, orderId }: Fields): PaymentName | undefined {
  if (typeof transactionId === 'string') return { transactionId };
  return typeof orderId === 'string' ? { orderId } : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A gateway that checks the bytes needs no encoder; one that encodes the fields again has its own spelling. */
function encode(fields: Fields, body: Buffer, signed: OpenPoints['signed']): Buffer {
  if (signed === 'as-sent') return body;
  const text = JSON.stringify(fields);
  if (signed === 'slashes-plain') return Buffer.from(text);
  const escaped = text.replaceAll('/', '\\/');
  return Buffer.from(
    escaped.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
