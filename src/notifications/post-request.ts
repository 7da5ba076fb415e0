import { createHmac } from 'node:crypto';
import type { Notification } from './notification.js';

/** The receiver and its body format. The URL usually holds a token, so it is never logged. */
export interface Receiver {
  readonly url: string;
  readonly format: 'json' | 'slack' | 'telegram';
  /** Signs the body. Slack and Telegram check no signature. */
  readonly secret?: string | undefined;
}

interface NotificationRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** @param now - seconds since 1970; signed, so that a receiver can refuse old requests */
export function formatRequest(receiver: Receiver, notification: Notification, now: number): NotificationRequest {
  const body = JSON.stringify(formatBody(receiver, notification));
  const headers = { 'content-type': 'application/json; charset=utf-8', 'payouts-notification-id': notification.id };
  if (receiver.secret === undefined) return { headers, body };
  return { headers: { ...headers, 'payouts-signature': `t=${now},v1=${sign(receiver.secret, now, body)}` }, body };
}

function formatBody({ url, format }: Receiver, notification: Notification): object {
  const { text } = notification;
  switch (format) {
    case 'json':
      return notification;
    case 'slack':
      // In a gateway's message, `<!channel>` must not notify all members.
      return { text: text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;') };
    case 'telegram':
      return { chat_id: new URL(url).searchParams.get('chat_id'), text, disable_web_page_preview: true };
  }
}

/** HMAC-SHA256 over `<timestamp>.<body>`, in hexadecimal digits. */
export function sign(secret: string, timestamp: number, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
}

/** The result of one attempt. Only `delivered` ends the retries. */
type PostOutcome =
  | { readonly kind: 'delivered' }
  | {
      readonly kind: 'failed';
      /** Without the URL, which may hold a token, and without the receiver's text. */
      readonly reason: string;
      /** The receiver works, and does not take this notification. */
      readonly isRefused?: true;
      /** The delay that the receiver asked for, in ms. */
      readonly retryAfterMs?: number;
    };

const BODY_LIMIT = 64 * 1024;

/**
 * Posts once. Only a whole response with a 2xx status counts: a receiver that dies during it may have kept nothing. It
 * follows no redirect, which would send the content elsewhere.
 */
export async function postRequest(
  url: string,
  { headers, body }: NotificationRequest,
  timeoutMs: number,
): Promise<PostOutcome> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { method: 'POST', headers: { ...headers }, body, redirect: 'manual', signal });
    await readToEnd(response);
    if (response.ok) return { kind: 'delivered' };
    const reason = `the receiver responded with HTTP ${response.status}`;
    return { kind: 'failed', reason, ...(isRefusal(response) && { isRefused: true }), ...retryAfter(response) };
  } catch (error) {
    return { kind: 'failed', reason: describeFailure(error as Error, timeoutMs) };
  }
}

const REQUEST_TIMEOUT = 408;

function isRefusal({ status }: Response): boolean {
  return status < 500 && status !== REQUEST_TIMEOUT;
}

async function readToEnd({ body }: Response): Promise<void> {
  if (body === null) return;
  let length = 0;
  for await (const chunk of body) {
    length += (chunk as Uint8Array).length;
    if (length > BODY_LIMIT) return;
  }
}

function retryAfter({ headers }: Response): { readonly retryAfterMs?: number } {
  const seconds = headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(seconds) ? { retryAfterMs: Number(seconds) * 1_000 } : {};
}

/** Messages of the HTTP client may name the URL; its codes do not. */
function describeFailure({ name, cause }: Error, timeoutMs: number): string {
  if (name === 'TimeoutError') return `no complete response within ${timeoutMs} ms`;
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return `no response: ${typeof code === 'string' ? code : name}`;
}
