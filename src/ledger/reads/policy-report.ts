import { z } from 'zod';
import { formatDuration, nameCurrency } from '../../base/format.js';
import { parseStored, storedTime } from '../parse-stored.js';
import { ask, askReadable, type LedgerConnection } from '../ledger-connection.js';

const ruleUsage = z.object({
  rule: z.string(),
  unit: z.enum(['usd', 'amount', 'count']),
  limit: z.string(),
  paymentId: z.number().optional(),
  withinMs: z.number(),
  per: z.enum(['address', 'signer']).nullable(),
  buckets: z.array(z.object({ bucket: z.string(), spent: z.string(), wanted: z.string(), ratio: z.number() })),
  unknown: z.string().nullable(),
});

const heldCount = z.object({ rule: z.string(), reason: z.string(), count: z.number(), since: storedTime.optional() });

const policyReport = z.object({
  hash: z.string(),
  at: storedTime,
  rules: z.array(ruleUsage),
  held: z.array(heldCount),
  heldWithoutRule: z.array(heldCount).default([]),
  meanings: z.array(z.object({ rule: z.string(), meaning: z.string() })).default([]),
  ratesAt: storedTime.nullable(),
  ratesMissingSince: storedTime.nullable().default(null),
});

export interface RuleUsage {
  readonly rule: string;
  readonly unit: 'usd' | 'amount' | 'count';
  /** Decimal strings: dollars, amounts of the one currency, or sends. */
  readonly limit: string;
  /** The currency, if the unit is amount. */
  readonly paymentId?: number | undefined;
  readonly withinMs: number;
  readonly per: 'address' | 'signer' | null;
  /** Some of them, the fullest first. Without a name if the rule counts everything together. */
  readonly buckets: readonly BucketUsage[];
  readonly unknown: string | null;
}

export interface BucketUsage {
  readonly bucket: string;
  readonly spent: string;
  /** By payouts that wait for room. */
  readonly wanted: string;
  /** The spent part of the limit. */
  readonly ratio: number;
}

export interface HeldCount {
  readonly rule: string;
  /** The rule's verdict. */
  readonly reason: string;
  readonly count: number;
  /**
   * When the first of them should have been released by its rule, or since when it is held if that is not known; wall
   * clock, ms.
   */
  readonly since?: number | undefined;
}

/**
 * The sending worker's report on its policy, for people. It decides nothing: someone who can write to Redis can alter
 * it.
 */
export interface PolicyReport {
  /** Of the active policy. */
  readonly hash: string;
  /** Wall clock, ms. */
  readonly at: number;
  readonly rules: readonly RuleUsage[];
  /** By rule and verdict. */
  readonly held: readonly HeldCount[];
  /** What a signature or the send journal holds: the rule is empty, the reason is `signature` or `journal`. */
  readonly heldWithoutRule?: readonly HeldCount[];
  /** Every rule in words, in the order of the file; the last is of payouts that no cap covers. */
  readonly meanings?: readonly { readonly rule: string; readonly meaning: string }[];
  /** When the oldest rate in use was fetched, wall clock, ms; null if none was, or no rule needs dollars. */
  readonly ratesAt: number | null;
  /** Since when rates are missing, wall clock, ms; null if they are not. */
  readonly ratesMissingSince: number | null;
}

/** @returns undefined if no worker with a policy has reported */
export async function readPolicyReport({ redis, keys }: LedgerConnection): Promise<PolicyReport | undefined> {
  const text = await askReadable(redis.get(keys.policy), null);
  return parseStored(policyReport, text);
}

/** The unit of a window's figures, for people. */
export function unitOfUsage(
  { unit, paymentId }: Pick<RuleUsage, 'unit' | 'paymentId'>,
  currencies: readonly { readonly paymentId: number; readonly name: string }[],
): string | undefined {
  if (unit !== 'amount') return unit === 'usd' ? 'USD' : 'sends';
  return paymentId === undefined ? undefined : nameCurrency(paymentId, currencies);
}

/** A report expires unless it is renewed. */
export async function writePolicyReport({ redis, keys }: LedgerConnection, report: PolicyReport): Promise<void> {
  await ask(redis.set(keys.policy, JSON.stringify(report), 'PX', FORGOTTEN_AFTER_MS));
}

const FORGOTTEN_AFTER_MS = 7 * 86_400_000;

/** In words; undefined if no rule needs rates. @param now - wall clock, ms */
export function describeRates(
  { ratesAt, ratesMissingSince }: Pick<PolicyReport, 'ratesAt' | 'ratesMissingSince'>,
  now: number,
): string | undefined {
  const since = (at: number): string => formatDuration(Math.max(0, now - at));
  if (ratesAt !== null) return `fetched ${since(ratesAt)} ago`;
  return ratesMissingSince === null ? undefined : `missing for ${since(ratesMissingSince)}`;
}
