import { isIP } from 'node:net';
import { z } from 'zod';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, GATEWAY_APIS, type GatewayApi } from './account-settings.js';
import { unknownResendsForMs } from './kernel-resend.js';
import { keyNameField, millisecondsField, webhookUrlField, wholeNumberField } from './fields.js';
import { parseRedisUrl } from './redis.js';
import { flag, type PartialSettings, port, type Setting, type Settings, type SettingTable, text } from './setting.js';

const redisUrl = z.string('must be a string').superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export const WORKER_SETTINGS = {
  /** The ledger's Redis: `redis://[user:password@]host:port[/db]`, `redis-sentinel://host:port,host:port/master`, `redis-cluster://host:port,host:port`; `rediss…` for TLS. See [redis.md](redis.md). */
  redisUrl: {
    section: 'redis',
    variable: 'REDIS_URL',
    rule: redisUrl,
    secret: true,
    default: 'redis://127.0.0.1:6379',
  },
  /** Sends even on a Redis that may forget sends, and without waiting for replicas. Never with real money. */
  allowVolatileRedis: { section: 'redis', variable: 'ALLOW_VOLATILE_REDIS', rule: flag, default: false },
  /** How many replicas of Redis must acknowledge a send, an accepted payout, a cancellation or a pause, if the account knows fewer. For a Redis behind one address, which does not name them. See [redis.md](redis.md). */
  redisReplicas: {
    section: 'redis',
    variable: 'REDIS_REPLICAS',
    rule: wholeNumberField(0),
    absent: 'all that the account knows',
  },
  /** The folder of the send journals, on a disk that outlives the process. */
  journalDir: { section: 'sending', variable: 'SEND_JOURNAL_DIR', rule: text, default: './data/journal' },
  /** How long full journal files are kept for `adopt-ledger`, and how long the ledger remembers an unused journal. */
  journalDays: {
    section: 'sending',
    variable: 'SEND_JOURNAL_DAYS',
    rule: wholeNumberField(1, 36_500),
    default: 30,
    unit: 'days',
  },
  /** The folder in which `PAYOUT_RETENTION_DAYS` keeps what it removes from Redis; `payouts get` and `payouts list --archived` read it. See [redis.md](redis.md#the-archive). */
  archiveDir: {
    section: 'retention',
    variable: 'PAYOUT_ARCHIVE_DIR',
    rule: text,
    absent: 'what is removed is gone',
  },
} as const satisfies SettingTable;

export const WORKER_COMMAND_SETTINGS = {
  /** Several accounts in one worker process, instead of `GATEWAY_*`; see below. */
  accountsFile: {
    section: 'account',
    variable: 'PAYOUT_ACCOUNTS_FILE',
    rule: text,
    absent: 'the account of `GATEWAY_PLATFORM_ID`',
  },
  /** A module with a gateway of your own, instead of `GATEWAY_BASE_URL` and `GATEWAY_SECRET_KEY`: see own-gateway.md. It decides where money goes, so only root and the process's user may be able to write it. */
  gatewayFile: { section: 'account', variable: 'GATEWAY_FILE', rule: text, absent: 'the API of the gateway' },
  /** A payout in progress for longer counts as stuck in the metrics. */
  stuckAfterMs: {
    section: 'polling',
    variable: 'STUCK_AFTER_MS',
    rule: wholeNumberField(1_000),
    default: 86_400_000,
    unit: 'ms',
  },
  /** Port on which `payouts worker` takes the webhooks of the gateway, at `/gateway-events/PLATFORM_ID`; 0 takes a free one. Each makes the next poll of its payout due at once, and changes nothing else. Only for accounts of `GATEWAY_API=v2`, or with a gateway of your own that sends some. With `--processes` the first one takes them, for all accounts. See [deploy.md](deploy.md#webhooks-of-the-gateway). */
  eventsPort: {
    section: 'polling',
    variable: 'GATEWAY_EVENTS_PORT',
    rule: port,
    absent: 'none are taken; payouts are polled',
  },
  /** Address of the same. Let a TLS proxy pass that path alone. */
  eventsHost: { section: 'polling', variable: 'GATEWAY_EVENTS_HOST', rule: text, default: '127.0.0.1' },
  /** Address on which the worker serves `/healthz`, `/readyz` and `/metrics`. */
  healthHost: { section: 'serving', variable: 'HEALTH_HOST', rule: text, default: '127.0.0.1' },
  /** Port of the same; 0 takes a free one. With `--processes` that of the first process; the next has the next port. */
  healthPort: { section: 'serving', variable: 'HEALTH_PORT', rule: port, default: 9_464 },
  /** Lowest level of log entries that are written. Addresses are logged in full at `debug` and `trace` only. */
  logLevel: {
    section: 'serving',
    variable: 'LOG_LEVEL',
    rule: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` }),
    default: 'info',
  },
} as const satisfies SettingTable;

const SECRET_SETTINGS = {
  /** Accepts secret files whatever their owner and mode. Otherwise a file is refused if every user can read it, or others than root and the process's user can write it. The image sets it, because a container has no other users. */
  allowReadableSecrets: {
    section: 'account',
    variable: 'ALLOW_READABLE_SECRETS',
    rule: flag,
    default: false,
  },
} as const satisfies SettingTable;

/** Signers and the keyring. A signer is `file:PATH` (PKCS#8 PEM from `payouts keys generate`; a path alone is one too), `agent:SHA256:…` or `exec:PROGRAM`: see [control.md](control.md#signers). */
export const CONTROL_SETTINGS = {
  /** Whether `payouts enqueue`, `import`, `serve` and `sign` refuse an address with a wrong checksum, or of another network than its currency's. Programs pass it as `checkAddresses` of `PayoutProducer`. See [import.md](import.md#addresses). */
  checkAddresses: {
    section: 'control',
    variable: 'PAYOUT_CHECK_ADDRESSES',
    rule: flag,
    default: true,
  },
  /** Whether `payouts enqueue`, `import` and `serve` refuse a payment id that is not in the gateway's list, and an amount that it does not allow ([gateway-facts.md](gateway-facts.md#unlisted-payment-ids)). Programs pass it as `checkPaymentIds` of `PayoutProducer`. */
  checkPaymentIds: {
    section: 'control',
    variable: 'PAYOUT_CHECK_PAYMENT_IDS',
    rule: flag,
    default: true,
  },
  /** Whether `payouts enqueue`, `import` and `serve` refuse everything while no worker has published the gateway's list within a day. Programs pass it as `requireCurrencies` of `PayoutProducer`. */
  requireCurrencies: {
    section: 'control',
    variable: 'PAYOUT_REQUIRE_CURRENCIES',
    rule: flag,
    default: false,
  },
  /** The signer with which `payouts enqueue`, `import` and `keys sign` sign payouts. Programs pass it as `signer` of `PayoutProducer`. Only with `PAYOUT_SIGNER_NAME`. */
  signer: {
    section: 'control',
    variable: 'PAYOUT_SIGNER',
    rule: text,
    absent: 'payouts are not signed',
  },
  /** The name of its key in the keyring. Only with `PAYOUT_SIGNER`. */
  signerName: {
    section: 'control',
    variable: 'PAYOUT_SIGNER_NAME',
    rule: keyNameField,
    absent: 'payouts are not signed',
  },
  /** The keyring, YAML or JSON: the public keys whose signatures count. With it, a worker sends only signed payouts, and commands that send again need an operator's key. The dashboard then takes approvals. Option `keysFile` of `createPayoutWorker`, `PayoutProducer` and `createDashboard`. See [control.md](control.md). */
  keysFile: {
    section: 'control',
    variable: 'PAYOUT_KEYS_FILE',
    rule: text,
    absent: 'nothing is verified',
  },
  /** The signer with which the worker signs final states. Programs pass it as `receiptSigner` of `createPayoutWorker`. Only with `PAYOUT_WORKER_SIGNER_NAME`. */
  workerSigner: {
    section: 'control',
    variable: 'PAYOUT_WORKER_SIGNER',
    rule: text,
    absent: 'final states are not signed',
  },
  /** The name of its key in the keyring. Only with `PAYOUT_WORKER_SIGNER`. */
  workerSignerName: {
    section: 'control',
    variable: 'PAYOUT_WORKER_SIGNER_NAME',
    rule: keyNameField,
    absent: 'final states are not signed',
  },
} as const satisfies SettingTable;

const PLACEHOLDER = '{txhash}';

/**
 * `payment_id=https://…/{txhash}`, separated by commas.
 * @returns the templates by payment_id
 */
export const explorersField = z.string({ error: 'must be a string' }).transform((text, context) => {
  const templates = new Map<number, string>();
  for (const entry of text.split(',').map((each) => each.trim())) {
    const [, id = '', template = ''] = /^(\d{1,9})=(.+)$/.exec(entry) ?? [];
    const problem = templates.has(Number(id)) ? 'names a payment_id twice' : explorerProblem(id, template);
    if (problem !== undefined) {
      context.issues.push({ code: 'custom', message: `${problem}: ${entry}`, input: text });
      return z.NEVER;
    }
    templates.set(Number(id), template);
  }
  return templates;
});

function explorerProblem(id: string, template: string): string | undefined {
  if (id === '') return `must be entries such as 6=https://explorer.example/tx/${PLACEHOLDER}, separated by commas`;
  if (template.split(PLACEHOLDER).length !== 2) return `must contain ${PLACEHOLDER} once in each entry`;
  const isUsable = /^https:\/\/[^/?#{}@\s]+[/?#]\S*$/.test(template) && URL.canParse(template);
  return isUsable ? undefined : `must be a URL of https://, with ${PLACEHOLDER} behind the host`;
}

const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** Addresses, networks (`10.0.0.0/8`) or Express's names of networks, separated by commas. */
export const proxiesField = z.string({ error: 'must be a string' }).transform((text, context) => {
  const proxies = text.split(',').map((each) => each.trim());
  const wrong = proxies.find((proxy) => !isNetwork(proxy));
  if (wrong === undefined) return proxies;
  const message = `must be addresses, networks such as 10.0.0.0/8, or loopback, separated by commas: ${wrong}`;
  context.issues.push({ code: 'custom', message, input: text });
  return z.NEVER;
});

function isNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

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
  /** Password of the dashboard's basic authentication. At least 12 characters if other machines can reach it. */
  dashboardPassword: {
    section: 'serving',
    variable: 'DASHBOARD_PASSWORD',
    rule: text,
    secret: true,
    absent: 'none is asked for, on loopback only',
    example: './secrets/dashboard-password.txt',
  },
  /** Proxies in front of the dashboard whose `X-Forwarded-For` names the client, separated by commas: addresses, networks such as `10.0.0.0/8`, or `loopback`. Without it, all users behind a proxy count as one. */
  dashboardTrustedProxies: {
    section: 'serving',
    variable: 'DASHBOARD_TRUSTED_PROXIES',
    rule: proxiesField,
    absent: 'the client is who connects',
  },
  /** The path under which browsers see the dashboard, such as `/admin/payouts`, whether or not a proxy in front of it strips that. */
  dashboardPath: {
    section: 'serving',
    variable: 'PAYOUT_DASHBOARD_PATH',
    rule: z
      .string('must be a string')
      .regex(/^(\/[^/?#\s]+)+$/, 'must be a path such as /admin/payouts, without a slash at the end'),
    absent: 'the dashboard is at `/`',
  },
  /** What the dashboard is of, such as `staging`: a band on top of each page says so, in red if it begins with `prod`. */
  environment: {
    section: 'serving',
    variable: 'PAYOUT_ENVIRONMENT',
    rule: text
      .regex(/^[^\p{C}\p{Z}]+( [^\p{C}\p{Z}]+)*$/u, 'must be words in one line')
      .max(40, 'must have at most 40 characters'),
    absent: 'no band',
  },
  /** Block explorers by currency (payment_id), for links from a txhash: entries such as `6=https://explorer.example/tx/{txhash}`, separated by commas. */
  explorers: {
    section: 'serving',
    variable: 'PAYOUT_EXPLORERS',
    rule: explorersField,
    absent: 'no links',
  },
} as const satisfies SettingTable;

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
    default:
      'failed,rejected,unknown,late_payment,other_payment,tampering,balance_dropped,paused,resumed,objection,ledger_adopted',
  },
  /** The body: `json` is signed and has all fields; `slack` and `telegram` are a line of text in their format. */
  notifyFormat: {
    section: 'notifications',
    variable: 'NOTIFY_FORMAT',
    rule: z.enum(NOTIFY_FORMATS, { error: `must be one of ${NOTIFY_FORMATS.join(', ')}` }),
    default: 'json',
  },
  /** Where people reach the dashboard, such as `https://payouts.example.com`. Runbooks in notifications are then links to it. */
  notifyDashboardUrl: {
    section: 'notifications',
    variable: 'DASHBOARD_URL',
    rule: z
      .string('must be a string')
      .regex(
        /^https?:\/\/[^\s?#@]+[^\s?#@/]$/,
        'must be http(s)://host[/path], without a user, a query or a slash at the end',
      ),
    absent: 'the path of the page in this package',
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

/** Only `payouts serve` reads these, beside the account. See [http.md](http.md). */
export const SERVE_SETTINGS = {
  /** Address of the HTTP door. One that other machines can reach needs TLS or a named proxy. */
  serveHost: { section: 'http', variable: 'SERVE_HOST', rule: text, default: '127.0.0.1' },
  /** Port of the HTTP door; 0 takes a free one. */
  servePort: { section: 'http', variable: 'SERVE_PORT', rule: port, default: 3_100 },
  /** The file of tokens, of `payouts serve token`, which names each client, its account and its rights. It is read again when it changes. Only root and the process's user may have write access. */
  serveTokensFile: {
    section: 'http',
    variable: 'SERVE_TOKENS_FILE',
    rule: text,
    required: true,
    example: './secrets/serve-tokens.yaml',
  },
  /** The certificate of the HTTP door with its chain, PEM. Only with `SERVE_TLS_KEY_FILE`. SIGHUP reads both again. */
  serveTlsCertFile: { section: 'http', variable: 'SERVE_TLS_CERT_FILE', rule: text, absent: 'plain HTTP' },
  /** The private key of that certificate, PEM. Only with `SERVE_TLS_CERT_FILE`. */
  serveTlsKeyFile: { section: 'http', variable: 'SERVE_TLS_KEY_FILE', rule: text, absent: 'plain HTTP' },
  /** TLS proxies that may connect without TLS, separated by commas: addresses, networks such as `10.0.0.0/8`, or `loopback`, `linklocal`, `uniquelocal`. Others are refused. */
  serveTrustedProxies: {
    section: 'http',
    variable: 'SERVE_TRUSTED_PROXIES',
    rule: proxiesField,
    absent: 'without TLS, only this machine may connect',
  },
  /** Port on `HEALTH_HOST` where `payouts serve` has `/healthz`, `/readyz` and `/metrics`; 0 takes a free one. */
  serveHealthPort: { section: 'http', variable: 'SERVE_HEALTH_PORT', rule: port, default: 9_466 },
} as const satisfies SettingTable;

export { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, GATEWAY_APIS, type GatewayApi };

/** Only the `payouts` command reads these; they are no options of programs. */
export const COMMAND_SETTINGS = {
  ...WORKER_COMMAND_SETTINGS,
  ...SECRET_SETTINGS,
  ...CONTROL_SETTINGS,
  ...DASHBOARD_SETTINGS,
  ...NOTIFY_SETTINGS,
  ...SERVE_SETTINGS,
} as const;

export const SETTINGS = { ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS, ...WORKER_SETTINGS, ...COMMAND_SETTINGS } as const;

/**
 * Limit from asking to begin a send until its first byte, in ms. A process stopped for longer must not write. Redis's
 * disk and replicas have the same time to keep a write.
 */
export const GUARD_MS = 1_000;

/** Of a connection for a withdrawal: DNS, TCP and TLS together. */
export const CONNECT_WITHIN_MS = 10_000;

type Table = typeof ACCOUNT_SETTINGS;

/** How an account is paced and polled. Times in ms. */
export type AccountSettings = Settings<Table>;

/** Settings that may be missing or `undefined`. */
export type PartialAccountSettings = PartialSettings<Table>;

const ROWS: readonly (readonly [name: string, row: Setting])[] = Object.entries(ACCOUNT_SETTINGS);

/** The default settings of an account. */
export const DEFAULT_ACCOUNT_SETTINGS = Object.fromEntries(
  ROWS.flatMap(([name, row]) => ('default' in row ? [[name, row.default]] : [])),
) as unknown as AccountSettings;

/** For a request whose sender's own word is lost: what the slowest kernel and the default settings allow. */
export const UNKNOWN_IN_FLIGHT_MS =
  GUARD_MS + unknownResendsForMs(CONNECT_WITHIN_MS) + DEFAULT_ACCOUNT_SETTINGS.inFlightMaxMs;

type Rules = { readonly [Name in keyof Table]: Table[Name]['rule'] };

/** Checks each setting alone; `checkOptions` also finds contradictions. */
export const partialAccountSettingsSchema = z
  .object(Object.fromEntries(ROWS.map(([name, { rule }]) => [name, rule])) as unknown as Rules)
  .partial();

export function completeSettings(settings: PartialAccountSettings): AccountSettings {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_ACCOUNT_SETTINGS, ...Object.fromEntries(given) };
}
