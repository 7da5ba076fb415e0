import { createHmac } from 'node:crypto';

/** An account of the gateway, with a client that shares no code with this project. */
export interface Merchant {
  readonly url: string;
  readonly platformId: number;
  readonly secretKey: string;
}

export type Reply = Readonly<Record<string, unknown>>;

/** The form body of a call, signed as docs/gateway-api.md#authentication says. */
export function signForm(merchant: Merchant, fields: Readonly<Record<string, string>>): string {
  const payload = new URLSearchParams(fields).toString();
  return `${payload}&hash=${createHmac('sha256', merchant.secretKey).update(payload).digest('hex')}`;
}

/** Posts a body as it is. */
export async function post(url: string, body: string): Promise<Response> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return fetch(url, { method: 'POST', headers, body, redirect: 'manual' });
}

/** Signs and sends one call; the fields must be in the documented order. */
export async function call(
  merchant: Merchant,
  endpoint: string,
  fields: Readonly<Record<string, string>>,
): Promise<Reply> {
  const response = await post(`${merchant.url}/${endpoint}`, signForm(merchant, fields));
  return (await response.json()) as Reply;
}

/** Fields of a withdrawal of 10 USDT, with changes. */
export function withdrawFields(
  merchant: Merchant,
  change: { paymentId?: number; amount?: string; addressTo?: string; symbol?: string } = {},
): Record<string, string> {
  return {
    payment_id: String(change.paymentId ?? 6),
    platform_id: String(merchant.platformId),
    amount: change.amount ?? '10',
    address_to: change.addressTo ?? 'TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE',
    ...(change.symbol === undefined ? {} : { symbol: change.symbol }),
  };
}
