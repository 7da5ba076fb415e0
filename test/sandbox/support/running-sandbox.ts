import { createHmac } from 'node:crypto';
import { systemClock } from '../../../src/base/clock.js';
import { startSandbox, type SandboxOptions } from '../../../src/sandbox/index.js';
import { closeAfterTest } from '../../worker/support/close-after-test.js';

/** An account of the gateway, with a client that shares no code with this project. */
export interface Merchant {
  readonly url: string;
  readonly platformId: number;
  readonly secretKey: string;
}

export type Reply = Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, string>>;

export const sign = (payload: string, secretKey: string) =>
  createHmac('sha256', secretKey).update(payload).digest('hex');

/** The form body of a call, signed as docs/gateway-api-v1.md#authentication says. */
export function signForm({ secretKey }: Merchant, fields: Fields) {
  const payload = new URLSearchParams(fields).toString();
  return `${payload}&hash=${sign(payload, secretKey)}`;
}

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export const post = async (url: string, body: string) =>
  fetch(url, { method: 'POST', headers: FORM, body, redirect: 'manual' });

/** @param fields - in the documented order */
export async function call(merchant: Merchant, endpoint: string, fields: Fields) {
  const response = await post(`${merchant.url}/${endpoint}`, signForm(merchant, fields));
  return (await response.json()) as Reply;
}

type Change = Readonly<{ paymentId?: number; amount?: string; addressTo?: string; symbol?: string }>;

/** Fields of a withdrawal of 10 USDT, with changes. */
export const withdrawFields = (
  { platformId }: Merchant,
  { paymentId = 6, amount = '10', addressTo = 'TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE', symbol }: Change = {},
) => ({
  ...{ payment_id: String(paymentId), platform_id: String(platformId), amount, address_to: addressTo },
  ...(symbol !== undefined && { symbol }),
});

export const withdraw = async (merchant: Merchant, change?: Change) =>
  call(merchant, 'withdraw', withdrawFields(merchant, change));

export const SECRET_KEY = 'a-secret-that-must-not-leak';

/** A sandbox with account 1001; it ends with the test. Its clock moves only when a test advances it. */
export async function runSandbox(options: Partial<SandboxOptions> = {}) {
  let nowMs = 5_000;
  const clock = { ...systemClock, now: () => nowMs, advance: (ms: number) => void (nowMs += ms) };
  const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];
  const sandbox = closeAfterTest(await startSandbox({ accounts, clock, ...options }));
  return { sandbox, clock, merchant: { url: sandbox.url, platformId: 1001, secretKey: SECRET_KEY } };
}
