import { z } from 'zod';
import { wholeNumberField } from '../fields.js';
import { parseRedisUrl } from '../redis.js';
import type { SettingTable } from '../setting.js';
import { flag, port, text } from './rules.js';

const redisUrl = z.string().superRefine((url, context) => {
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
  /** How many replicas of Redis must acknowledge a send, a cancellation or a pause; with Sentinel at least 1. See [redis.md](redis.md). */
  redisReplicas: {
    section: 'redis',
    variable: 'REDIS_REPLICAS',
    rule: wholeNumberField(0),
    absent: 'all that were seen connected',
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
  /** A payout in progress for longer counts as stuck in the metrics. */
  stuckAfterMs: {
    section: 'polling',
    variable: 'STUCK_AFTER_MS',
    rule: wholeNumberField(1_000),
    default: 86_400_000,
    unit: 'ms',
  },
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
