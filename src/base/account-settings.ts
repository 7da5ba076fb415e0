import { z } from 'zod';
import { audienceField, baseUrlField, millisecondsField, platformIdField, wholeNumberField } from './fields.js';
import type { SettingTable } from './setting.js';
import { text } from './setting.js';

/** The account, and how to reach it. */
export const ACCOUNT_IDENTITY = {
  /** The merchant account. */
  platformId: {
    section: 'account',
    variable: 'GATEWAY_PLATFORM_ID',
    rule: platformIdField,
    required: true,
    example: '4242',
  },
  /** The gateway's address: `https://…`, or `http://` on loopback only. A path is kept. Every caller of the gateway needs it: the worker, `payouts gateway`, `doctor`, `resolve --sent`. */
  baseUrl: {
    section: 'account',
    variable: 'GATEWAY_BASE_URL',
    rule: baseUrlField,
    hidden: true,
    required: true,
    example: 'https://gateway.example',
  },
  /** Signs the requests; never logged, never in Redis. Every caller of the gateway needs it, and `payouts sandbox`. */
  secretKey: {
    section: 'account',
    variable: 'GATEWAY_SECRET_KEY',
    rule: text,
    secret: true,
    required: true,
    example: './secrets/gateway-secret-key.txt',
  },
} as const satisfies SettingTable;

export const GATEWAY_APIS = ['v1', 'v2'] as const;

/** A generation of the gateway's API. */
export type GatewayApi = (typeof GATEWAY_APIS)[number];

/** How an account is called, paced and polled. An accounts file and a program may set each of them per account. */
export const ACCOUNT_SETTINGS = {
  /** The generation of the gateway's API: `v1` ([forms](gateway-api-v1.md)) or `v2` ([JSON](gateway-api-v2.md)), whichever the gateway gave the account. The first send binds the ledger to it; [how an account moves](move-to-v2.md). */
  api: {
    section: 'account',
    variable: 'GATEWAY_API',
    rule: z.enum(GATEWAY_APIS, { error: 'must be v1 or v2' }),
    default: 'v1',
  },
  /** Time limit of a whole call of the endpoints that only read. */
  timeoutMs: {
    section: 'sending',
    variable: 'GATEWAY_TIMEOUT_MS',
    rule: millisecondsField(100),
    default: 30_000,
    unit: 'ms',
  },
  /** Time limit of a `/withdraw`. A late response counts until then. */
  withdrawTimeoutMs: {
    section: 'sending',
    variable: 'WITHDRAW_TIMEOUT_MS',
    rule: millisecondsField(100),
    default: 60_000,
    unit: 'ms',
  },
  /** From a response to the next send. The gateway blocks an account whose withdrawals come less than a second apart. At least 1001 ms are kept, because clocks run at different rates. */
  intervalMs: {
    section: 'sending',
    variable: 'WITHDRAW_INTERVAL_MS',
    rule: millisecondsField(1_000),
    default: 1_010,
    unit: 'ms',
  },
  /** How long a byte that has left this host may be on its way to the gateway's program, in a proxy too. After a request whose response cannot be trusted nothing is sent meanwhile: without a response, and also after any other that makes the payout `unknown`, such as a proxy's HTTP 502, which does not say that the gateway has read the request. What the host's kernel may send again comes on top, see [deploy.md](deploy.md#take-over-times). */
  inFlightMaxMs: {
    section: 'sending',
    variable: 'IN_FLIGHT_MAX_MS',
    rule: millisecondsField(0),
    default: 30_000,
    unit: 'ms',
  },
  /** How long the sender's heartbeat must be missing before another worker takes over: several round trips to Redis. */
  leaseMs: { section: 'sending', variable: 'LEASE_MS', rule: millisecondsField(500), default: 10_000, unit: 'ms' },
  /** Wait between a takeover and the first send. After a send whose response cannot be trusted it is at least as long as that request may arrive. If hosts have journals of their own, this is the time to object (see [guarantees.md](guarantees.md), A7). */
  quarantineMs: {
    section: 'sending',
    variable: 'TAKEOVER_QUARANTINE_MS',
    rule: millisecondsField(0),
    default: 10_000,
    unit: 'ms',
  },
  /** The account is paused after this many rejections without an accepted withdrawal in between. */
  maxRejectionsInARow: {
    section: 'sending',
    variable: 'MAX_REJECTIONS_IN_A_ROW',
    rule: wholeNumberField(1),
    default: 5,
  },
  /** The same for rejections that name the payout's own data: currency, address, tag or amount. They count apart. */
  maxPayoutRejectionsInARow: {
    section: 'sending',
    variable: 'MAX_PAYOUT_REJECTIONS_IN_A_ROW',
    rule: wholeNumberField(1),
    default: 50,
  },
  /** The account is paused after this many sends in a row without a trustworthy response. */
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
  /** How often the sending worker queries `/balance`, for operators and alerts only; 0 for never. */
  balanceEveryMs: {
    section: 'polling',
    variable: 'BALANCE_EVERY_MS',
    rule: millisecondsField(0),
    default: 60_000,
    unit: 'ms',
  },
  /** How often the sending worker queries `/currencies` for names and rates; 0 for never. */
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
    // The journal may name a send of the last day, so its payout must still exist.
    rule: wholeNumberField(1, 36_500),
    unit: 'days',
    absent: 'keep every payout',
  },
  /** The environment. Every signature names it, and a worker rejects any other. If the gateway's host name changes, set this to the former value. 1 to 200 printable ASCII characters without spaces. */
  audience: {
    section: 'control',
    variable: 'PAYOUT_AUDIENCE',
    rule: audienceField,
    absent: '`GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID`',
  },
  /** The policy, YAML: what may leave the account, see [control.md](control.md#the-policy). */
  policyFile: {
    section: 'control',
    variable: 'PAYOUT_POLICY_FILE',
    rule: text,
    absent: 'every payout may leave',
  },
} as const satisfies SettingTable;
