import { z } from 'zod';
import { millisecondsField, webhookUrlField } from '../fields.js';
import type { SettingTable } from '../setting.js';
import { port, text } from './rules.js';

const SHORTEST_SIGNING_SECRET = 16;

const NOTIFY_FORMATS = ['json', 'slack', 'telegram'] as const;

/** Only `payouts notify` reads these, beside the account. See [notifications.md](notifications.md). */
export const NOTIFY_SETTINGS = {
  /** Where each notification is posted: `https://…`, or `http://` on loopback only. The URL of a Slack or Telegram webhook alone permits writing there, so it is a secret. */
  notifyUrl: {
    section: 'notifications',
    variable: 'NOTIFY_URL',
    rule: webhookUrlField,
    secret: true,
    required: true,
    example: './secrets/notify-url.txt',
  },
  /** Signs each notification (HMAC-SHA256), at least 16 characters. Required for `NOTIFY_FORMAT` `json`; Slack and Telegram check no signature. */
  notifySecret: {
    section: 'notifications',
    variable: 'NOTIFY_SECRET',
    rule: text.min(SHORTEST_SIGNING_SECRET, `must have at least ${SHORTEST_SIGNING_SECRET} characters`),
    secret: true,
    absent: 'not signed',
    example: './secrets/notify-secret.txt',
  },
  /** Which events are sent, separated by commas: states of payouts and events of the account. `all` sends each but `journal_head`. */
  notifyEvents: {
    section: 'notifications',
    variable: 'NOTIFY_EVENTS',
    rule: text,
    default: 'failed,rejected,unknown,late_payment,tampering,balance_dropped,paused,resumed,objection,ledger_adopted',
  },
  /** The body: `json` is signed and has all fields; `slack` and `telegram` are a line of text in their format. */
  notifyFormat: {
    section: 'notifications',
    variable: 'NOTIFY_FORMAT',
    rule: z.enum(NOTIFY_FORMATS, { error: `must be one of ${NOTIFY_FORMATS.join(', ')}` }),
    default: 'json',
  },
  /** Time limit of one attempt, with the response. */
  notifyTimeoutMs: {
    section: 'notifications',
    variable: 'NOTIFY_TIMEOUT_MS',
    rule: millisecondsField(100),
    default: 10_000,
    unit: 'ms',
  },
  /** Port on `HEALTH_HOST` where `payouts notify` serves `/healthz`, `/readyz` and `/metrics`; 0 takes a free one. */
  notifyHealthPort: { section: 'notifications', variable: 'NOTIFY_HEALTH_PORT', rule: port, default: 9_465 },
} as const satisfies SettingTable;
