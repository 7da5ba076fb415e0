import { createHmac } from 'node:crypto';
import type { Notification } from './notification.js';

/** Whom the receiver is, and how it wants the body. The URL holds a token in most cases: it is never logged. */
export interface Receiver {
  readonly url: string;
  readonly format: 'json' | 'slack' | 'telegram';
  /** Signs the body. Slack and Telegram check no signature. */
  readonly secret?: string | undefined;
}

/** What is posted. */
export interface NotificationRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** @param now - seconds since 1970, part of what is signed: a receiver refuses what is old */
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
      // In a gateway's message `<!channel>` must not call everybody.
      return { text: text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;') };
    case 'telegram':
      return { chat_id: new URL(url).searchParams.get('chat_id'), text, disable_web_page_preview: true };
  }
}

/** HMAC-SHA256 over `<timestamp>.<body>`, in hexadecimal digits. */
export function sign(secret: string, timestamp: number, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
}
