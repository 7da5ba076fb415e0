import { z } from 'zod';
import { millisecondsField, wholeNumberField } from './fields.js';

/**
 * How an account is paced and followed: each setting's rule and default, for the environment, the accounts file and
 * applications that run a worker themselves.
 */

/**
 * From asking to begin a send until its first byte, in ms. A process that was stopped for longer must not write. Redis's
 * disk and replicas have as long to keep a write.
 */
export const GUARD_MS = 1_000;

/** The rule of each setting. */
export const accountSettingFields = {
  timeoutMs: millisecondsField(100),
  withdrawTimeoutMs: millisecondsField(100),
  /** The gateway blocks an account whose withdraws come less than a second apart. */
  intervalMs: millisecondsField(1_000),
  inFlightMaxMs: millisecondsField(0),
  /** Room for several beats, each a round trip to Redis. */
  leaseMs: millisecondsField(500),
  quarantineMs: millisecondsField(0),
  maxRejectionsInARow: wholeNumberField(1),
  maxUnknownsInARow: wholeNumberField(1),
  pollMinMs: millisecondsField(10),
  pollMaxMs: millisecondsField(10),
  pollRate: wholeNumberField(1, 10_000),
  /** The journal may witness a send of the last day: its payout must still be there. */
  retentionDays: wholeNumberField(1, 36_500),
} as const;

/** Times in ms. */
export interface AccountSettings {
  /** For a whole call of the endpoints that only read. */
  readonly timeoutMs: number;
  /** For an answer to `/withdraw`. */
  readonly withdrawTimeoutMs: number;
  /** Between the answer to a withdraw and the next withdraw. */
  readonly intervalMs: number;
  /** After which a written request has arrived or never will. */
  readonly inFlightMaxMs: number;
  /** A sender whose beat stands still for so long is taken to be gone. */
  readonly leaseMs: number;
  /** Waited after a takeover before the first send. */
  readonly quarantineMs: number;
  /** The account is paused after so many. */
  readonly maxRejectionsInARow: number;
  /** The account is paused after so many. */
  readonly maxUnknownsInARow: number;
  /** Until the first poll of a transaction's status. */
  readonly pollMinMs: number;
  /** Longest time between two polls of a transaction. */
  readonly pollMaxMs: number;
  /** Polls a second. */
  readonly pollRate: number;
  /** Final payouts are removed after so many days; without it they are kept for good. */
  readonly retentionDays?: number;
}

/** The settings of an account that says nothing else. */
export const DEFAULT_ACCOUNT_SETTINGS: AccountSettings = {
  timeoutMs: 30_000,
  withdrawTimeoutMs: 60_000,
  intervalMs: 1_010,
  inFlightMaxMs: 30_000,
  leaseMs: 10_000,
  quarantineMs: 10_000,
  maxRejectionsInARow: 5,
  maxUnknownsInARow: 2,
  pollMinMs: 5_000,
  pollMaxMs: 300_000,
  pollRate: 10,
};

/** Settings that may be left out, also by saying `undefined`. */
export type PartialAccountSettings = { readonly [Name in keyof AccountSettings]?: AccountSettings[Name] | undefined };

export const partialAccountSettingsSchema = z.object(accountSettingFields).partial();

/** The rules that concern more than one setting are here too. */
export const accountSettingsSchema = partialAccountSettingsSchema.superRefine(
  ({ pollMinMs = 0, pollMaxMs = Infinity }, context) => {
    if (pollMinMs <= pollMaxMs) return;
    const message = `must not be more than pollMaxMs, ${pollMaxMs}`;
    context.addIssue({ code: 'custom', path: ['pollMinMs'], message, input: pollMinMs });
  },
);

/** Fills in the defaults. */
export function completeSettings(settings: PartialAccountSettings): AccountSettings {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_ACCOUNT_SETTINGS, ...Object.fromEntries(given) };
}
