import { z } from 'zod';
import {
  baseUrlField,
  keyNameField,
  millisecondsField,
  platformIdField,
  webhookUrlField,
  wholeNumberField,
} from './fields.js';
import { parseRedisUrl } from './redis.js';
import { explorersField, proxiesField } from './serving-fields.js';
import type { SettingTable } from './setting.js';

/**
 * Every setting, one row each: its name in code and in the accounts file (the key), its variable, its rule, its default.
 * The option types of the library, the reading of the environment and of the accounts file, `docs/configuration.md` and
 * `.env.example` derive from these rows; the comment of a row is its line in the docs. After a change: `npm run docs`.
 */

const HIGHEST_PORT = 65_535;

const port = wholeNumberField(0, HIGHEST_PORT);

const text = z.string().min(1, 'must not be empty');

const flag = z.boolean({ error: 'must be true or false' });

const redisUrl = z.string().superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

const SHORTEST_SIGNING_SECRET = 16;

const NOTIFY_FORMATS = ['json', 'slack', 'telegram'] as const;

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Which account it is, and how to reach it. */
export const ACCOUNT_IDENTITY = {
  /** The merchant account. */
  platformId: {
    section: 'account',
    variable: 'GATEWAY_PLATFORM_ID',
    rule: platformIdField,
    required: true,
    example: '4242',
  },
  /** Where the gateway is: `https://…`, or `http://` on loopback only. A path is kept. Needed by whatever calls the gateway: the worker, `payouts gateway`, `doctor`, `resolve --sent`. */
  baseUrl: {
    section: 'account',
    variable: 'GATEWAY_BASE_URL',
    rule: baseUrlField,
    hidden: true,
    required: true,
    example: 'https://gateway.example',
  },
  /** Signs the requests; never logged, never in Redis. Needed by whatever calls the gateway, and by `payouts sandbox`. */
  secretKey: {
    section: 'account',
    variable: 'GATEWAY_SECRET_KEY',
    rule: text,
    secret: true,
    required: true,
    example: './secrets/gateway-secret-key.txt',
  },
} as const satisfies SettingTable;

/** How an account is paced and followed. An accounts file and a program may set each of them per account. */
export const ACCOUNT_SETTINGS = {
  /** Time limit of a whole call of the endpoints that only read. */
  timeoutMs: {
    section: 'sending',
    variable: 'GATEWAY_TIMEOUT_MS',
    rule: millisecondsField(100),
    default: 30_000,
    unit: 'ms',
  },
  /** Time limit of a `/withdraw`. A late response still counts until then. */
  withdrawTimeoutMs: {
    section: 'sending',
    variable: 'WITHDRAW_TIMEOUT_MS',
    rule: millisecondsField(100),
    default: 60_000,
    unit: 'ms',
  },
  /**
   * From a response to the next send. The gateway blocks an account whose withdrawals come less than a second apart;
   * at least 1001 ms are kept, because clocks run at different rates.
   */
  intervalMs: {
    section: 'sending',
    variable: 'WITHDRAW_INTERVAL_MS',
    rule: millisecondsField(1_000),
    default: 1_010,
    unit: 'ms',
  },
  /** How long a request without a response may still be on its way to the gateway; nothing is sent meanwhile. */
  inFlightMaxMs: {
    section: 'sending',
    variable: 'IN_FLIGHT_MAX_MS',
    rule: millisecondsField(0),
    default: 30_000,
    unit: 'ms',
  },
  /** How long the sender's heartbeat must be missing before another worker takes over: several round trips to Redis. */
  leaseMs: { section: 'sending', variable: 'LEASE_MS', rule: millisecondsField(500), default: 10_000, unit: 'ms' },
  /**
   * Wait between a takeover and the first send; after a send without a response it is `IN_FLIGHT_MAX_MS` and more. Where
   * hosts have journals of their own, the time to object (see [guarantees.md](guarantees.md), A7).
   */
  quarantineMs: {
    section: 'sending',
    variable: 'TAKEOVER_QUARANTINE_MS',
    rule: millisecondsField(0),
    default: 10_000,
    unit: 'ms',
  },
  /** Rejections without an accepted withdrawal in between that pause the account. */
  maxRejectionsInARow: {
    section: 'sending',
    variable: 'MAX_REJECTIONS_IN_A_ROW',
    rule: wholeNumberField(1),
    default: 5,
  },
  /** Sends in a row without a trustworthy response that pause the account. */
  maxUnknownsInARow: { section: 'sending', variable: 'MAX_UNKNOWNS_IN_A_ROW', rule: wholeNumberField(1), default: 2 },
  /** Delay before a payout's first status poll; it grows by half from poll to poll. */
  pollMinMs: {
    section: 'polling',
    variable: 'STATUS_POLL_MIN_MS',
    rule: millisecondsField(10),
    default: 5_000,
    unit: 'ms',
    atMost: 'pollMaxMs',
  },
  /** Longest delay between two status polls of a payout; each varies by up to a tenth. */
  pollMaxMs: {
    section: 'polling',
    variable: 'STATUS_POLL_MAX_MS',
    rule: millisecondsField(10),
    default: 300_000,
    unit: 'ms',
  },
  /** Status polls for the account, over all processes. */
  pollRate: {
    section: 'polling',
    variable: 'STATUS_POLL_RATE',
    rule: wholeNumberField(1, 10_000),
    default: 10,
    unit: 'polls per second',
  },
  /** How often the worker that sends queries `/balance`, for operators and alerts only; 0 for never. */
  balanceEveryMs: {
    section: 'polling',
    variable: 'BALANCE_EVERY_MS',
    rule: millisecondsField(0),
    default: 60_000,
    unit: 'ms',
  },
  /** How often it queries `/currencies`, for their names and rates; 0 for never. */
  currenciesEveryMs: {
    section: 'polling',
    variable: 'CURRENCIES_EVERY_MS',
    rule: millisecondsField(0),
    default: 3_600_000,
    unit: 'ms',
  },
  /** Final payouts older than this are removed. See [redis.md](redis.md). */
  retentionDays: {
    section: 'retention',
    variable: 'PAYOUT_RETENTION_DAYS',
    // The journal may name a send of the last day: its payout must still be there.
    rule: wholeNumberField(1, 36_500),
    unit: 'days',
    absent: 'keep every payout',
  },
} as const satisfies SettingTable;

/** What concerns a whole worker process, also one inside an application. */
export const WORKER_SETTINGS = {
  /**
   * Where the ledger is: `redis://[user:password@]host:port[/db]`, `redis-sentinel://host:port,host:port/master`,
   * `redis-cluster://host:port,host:port`; `rediss…` for TLS. See [redis.md](redis.md).
   */
  redisUrl: {
    section: 'redis',
    variable: 'REDIS_URL',
    rule: redisUrl,
    secret: true,
    default: 'redis://127.0.0.1:6379',
  },
  /** Sends even on a Redis that may forget what was sent, and without waiting for replicas. Never with real money. */
  allowVolatileRedis: { section: 'redis', variable: 'ALLOW_VOLATILE_REDIS', rule: flag, default: false },
  /**
   * How many replicas of Redis must acknowledge a send, a cancellation or a pause; with Sentinel at least 1. See
   * [redis.md](redis.md).
   */
  redisReplicas: {
    section: 'redis',
    variable: 'REDIS_REPLICAS',
    rule: wholeNumberField(0),
    absent: 'all that were seen connected',
  },
  /** The folder of the send journals, on a disk that outlives the process. */
  journalDir: { section: 'sending', variable: 'SEND_JOURNAL_DIR', rule: text, default: './data/journal' },
  /** How long full journal files are kept for `adopt-ledger`, and the ledger remembers a journal that is no longer used. */
  journalDays: {
    section: 'sending',
    variable: 'SEND_JOURNAL_DAYS',
    rule: wholeNumberField(1, 36_500),
    default: 30,
    unit: 'days',
  },
} as const satisfies SettingTable;

/** What only `payouts worker` reads, beside the settings above. */
export const WORKER_COMMAND_SETTINGS = {
  /** Several accounts in one worker process, in place of `GATEWAY_*`; see below. */
  accountsFile: {
    section: 'account',
    variable: 'PAYOUT_ACCOUNTS_FILE',
    rule: text,
    absent: 'the account of `GATEWAY_PLATFORM_ID`',
  },
  /** A payout in progress for longer than this counts as stuck in the metrics. */
  stuckAfterMs: {
    section: 'polling',
    variable: 'STUCK_AFTER_MS',
    rule: wholeNumberField(1_000),
    default: 86_400_000,
    unit: 'ms',
  },
  /** Address on which the worker serves `/healthz`, `/readyz` and `/metrics`. */
  healthHost: { section: 'serving', variable: 'HEALTH_HOST', rule: text, default: '127.0.0.1' },
  /** Port of the same; 0 takes a free one. */
  healthPort: { section: 'serving', variable: 'HEALTH_PORT', rule: port, default: 9_464 },
  /** Least severe log entries that are written. Addresses are logged in full at `debug` and `trace` only. */
  logLevel: {
    section: 'serving',
    variable: 'LOG_LEVEL',
    rule: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` }),
    default: 'info',
  },
} as const satisfies SettingTable;

/** How the files of secrets are read, whichever command reads them. */
export const SECRET_SETTINGS = {
  /**
   * Accepts secret files that every user of the machine can read or write; else they are refused, as `ssh` refuses such a
   * key. The image sets it, because Kubernetes and compose mount secrets like this and a container has no other users.
   */
  allowReadableSecrets: {
    section: 'account',
    variable: 'ALLOW_READABLE_SECRETS',
    rule: flag,
    default: false,
  },
} as const satisfies SettingTable;

/** What only `payouts dashboard` reads. */
export const DASHBOARD_SETTINGS = {
  /** Address of the dashboard. One that other machines can reach needs a password. */
  dashboardHost: { section: 'serving', variable: 'DASHBOARD_HOST', rule: text, default: '127.0.0.1' },
  /** Port of the dashboard; 0 takes a free one. */
  dashboardPort: { section: 'serving', variable: 'DASHBOARD_PORT', rule: port, default: 3_000 },
  /** User name of the dashboard's basic authentication. */
  dashboardUser: {
    section: 'serving',
    variable: 'DASHBOARD_USER',
    rule: text,
    absent: '`payouts`',
    example: 'payouts',
  },
  /** Password of the dashboard's basic authentication; at least 12 characters where other machines can reach it. */
  dashboardPassword: {
    section: 'serving',
    variable: 'DASHBOARD_PASSWORD',
    rule: text,
    secret: true,
    absent: 'none is asked for, on loopback only',
    example: './secrets/dashboard-password.txt',
  },
  /**
   * Proxies in front of the dashboard whose `X-Forwarded-For` names the client, separated by commas: addresses, networks
   * such as `10.0.0.0/8`, or `loopback`. Without it, everybody behind a proxy waits for the wrong passwords of one.
   */
  dashboardTrustedProxies: {
    section: 'serving',
    variable: 'DASHBOARD_TRUSTED_PROXIES',
    rule: proxiesField,
    absent: 'the client is who connects',
  },
  /** Block explorers by currency (payment_id), to which the dashboard links a txhash: entries such as `6=https://explorer.example/tx/{txhash}`, separated by commas. */
  explorers: {
    section: 'serving',
    variable: 'PAYOUT_EXPLORERS',
    rule: explorersField,
    absent: 'no links',
  },
} as const satisfies SettingTable;

/** What only `payouts notify` reads, beside the account. See [notifications.md](notifications.md). */
export const NOTIFY_SETTINGS = {
  /**
   * Where each notification is posted: `https://…`, or `http://` on loopback only. The URL of a Slack or Telegram webhook
   * is all that is needed to write there, so it is a secret.
   */
  notifyUrl: {
    section: 'notifications',
    variable: 'NOTIFY_URL',
    rule: webhookUrlField,
    secret: true,
    required: true,
    example: './secrets/notify-url.txt',
  },
  /** Signs each notification (HMAC-SHA256), at least 16 characters. Required for `NOTIFY_FORMAT` `json`; Slack and Telegram check none. */
  notifySecret: {
    section: 'notifications',
    variable: 'NOTIFY_SECRET',
    rule: text.min(SHORTEST_SIGNING_SECRET, `must have at least ${SHORTEST_SIGNING_SECRET} characters`),
    secret: true,
    absent: 'not signed',
    example: './secrets/notify-secret.txt',
  },
  /** Which events are sent, separated by commas: states of payouts and events of the account. `all` sends each. */
  notifyEvents: {
    section: 'notifications',
    variable: 'NOTIFY_EVENTS',
    rule: text,
    default: 'failed,rejected,unknown,late_payment,tampering,paused,resumed,objection,ledger_adopted',
  },
  /** The body: `json` is signed and has all fields; `slack` and `telegram` are a line of text as those services take it. */
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

/** Keys: who signs what, and whose signatures count. Private keys are files of PKCS#8 PEM, made by `payouts keygen`. */
export const CONTROL_SETTINGS = {
  /**
   * The private key with which `payouts enqueue`, `import` and `sign` sign payouts. Programs pass it as `signingKey` of
   * `PayoutProducer`. Only with `PAYOUT_SIGNING_KEY_NAME`.
   */
  signingKeyFile: {
    section: 'control',
    variable: 'PAYOUT_SIGNING_KEY_FILE',
    rule: text,
    absent: 'payouts are not signed',
  },
  /** The name of that key in the keyring. Only with `PAYOUT_SIGNING_KEY_FILE`. */
  signingKeyName: {
    section: 'control',
    variable: 'PAYOUT_SIGNING_KEY_NAME',
    rule: keyNameField,
    absent: 'payouts are not signed',
  },
  /**
   * The keyring, YAML or JSON: the public keys of those whose signatures count. Only root and the user of the process may be
   * able to write it, and its folder. With it a worker sends nothing that is not signed, and the commands that send again ask
   * for the key of an operator (`--key`, `--ssh-key`).
   */
  keysFile: {
    section: 'control',
    variable: 'PAYOUT_KEYS_FILE',
    rule: text,
    absent: 'nothing is verified',
    example: './keys.yaml',
  },
  /** The private key with which the worker signs final states. Only with `PAYOUT_WORKER_KEY_NAME`. */
  workerKeyFile: {
    section: 'control',
    variable: 'PAYOUT_WORKER_KEY_FILE',
    rule: text,
    absent: 'final states are not signed',
  },
  /** The name of that key in the keyring. Only with `PAYOUT_WORKER_KEY_FILE`. */
  workerKeyName: {
    section: 'control',
    variable: 'PAYOUT_WORKER_KEY_NAME',
    rule: keyNameField,
    absent: 'final states are not signed',
  },
} as const satisfies SettingTable;

/** What programs do not pass as options: only the `payouts` command reads it. */
export const COMMAND_SETTINGS = {
  ...WORKER_COMMAND_SETTINGS,
  ...SECRET_SETTINGS,
  ...CONTROL_SETTINGS,
  ...DASHBOARD_SETTINGS,
  ...NOTIFY_SETTINGS,
} as const;

/** All rows. */
export const SETTINGS = { ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS, ...WORKER_SETTINGS, ...COMMAND_SETTINGS } as const;
