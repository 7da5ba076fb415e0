import { Cluster, type Redis } from 'ioredis';
import { UnreadableRecordError } from '../../base/errors.js';
import { type LedgerConnection, ask, pipelinedReadable } from '../ledger-connection.js';
import { parseRecord, type PayoutRecord } from '../payout-record.js';
import type { Payout } from '../payout.js';
import type { SendAttempt } from '../sender-ledger.js';
import { searchEvents, timeOfEvent } from './state-events.js';

export type AuditedRecord =
  | { readonly kind: 'payout'; readonly payout: Payout; readonly attempts: KnownAttempts }
  /** Retention removed it; its final state is left. */
  | { readonly kind: 'removed'; readonly state: string }
  | { readonly kind: 'unreadable'; readonly message: string }
  | { readonly kind: 'missing' };

/** Changes nothing. @returns in the order asked for */
export async function readAudited(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<AuditedRecord[]> {
  const { keys } = connection;
  const { replies } = await pipelinedReadable(connection, (pipeline) => {
    for (const payoutId of payoutIds) {
      pipeline.hgetall(keys.payout(payoutId)).hget(keys.removedBucket(payoutId), payoutId);
    }
  });
  return payoutIds.map((payoutId, index) => {
    const [record, removed] = replies.slice(2 * index, 2 * index + 2) as [
      PayoutRecord | undefined,
      string | null | undefined,
    ];
    if (record === undefined)
      return { kind: 'unreadable', message: `The record of payout ${payoutId} in Redis has another type` };
    return toAudited(payoutId, record, removed ?? null);
  });
}

function toAudited(payoutId: string, record: PayoutRecord, removed: string | null): AuditedRecord {
  if (Object.keys(record).length === 0)
    return removed === null ? { kind: 'missing' } : { kind: 'removed', state: removed };
  try {
    return { kind: 'payout', payout: parseRecord(payoutId, record), attempts: new KnownAttempts(record) };
  } catch (error) {
    if (!(error instanceof UnreadableRecordError)) throw error;
    return { kind: 'unreadable', message: error.message };
  }
}

/** Keys per call, which take Redis a millisecond. */
const SCAN_COUNT = 1_000;

/**
 * Every payoutId that has a record, even without an index entry; one may come twice. Also scans other keys of the same
 * Redis.
 */
export async function* scanPayoutIds({ redis, keys }: LedgerConnection): AsyncGenerator<string[]> {
  const prefix = keys.payout('');
  // Only a connected cluster knows its masters.
  if (redis instanceof Cluster) await ask(redis.exists(keys.ledger));
  const nodes: Redis[] = redis instanceof Cluster ? redis.nodes('master') : [redis];
  for (const node of nodes) {
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const [next, found]: [string, string[]] = await ask(
        node.scan(cursor, 'MATCH', `${escapeGlob(prefix)}*`, 'COUNT', SCAN_COUNT),
      );
      if (found.length > 0) yield found.map((key) => key.slice(prefix.length));
      cursor = next === '0' ? undefined : next;
    }
  }
}

const BUCKETS_AT_ONCE = 16;

/** Each payoutId that retention removed, with its final state. */
export async function* readRemoved(connection: LedgerConnection): AsyncGenerator<readonly [string, string][]> {
  const { removedBuckets } = connection.keys;
  for (let start = 0; start < removedBuckets.length; start += BUCKETS_AT_ONCE) {
    const { replies } = await pipelinedReadable(connection, (pipeline) => {
      for (const bucket of removedBuckets.slice(start, start + BUCKETS_AT_ONCE)) pipeline.hgetall(bucket);
    });
    yield replies.flatMap((reply) => Object.entries((reply ?? {}) as Record<string, string>));
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, String.raw`\$&`);
}

export class KnownAttempts {
  readonly #last: number;
  readonly #words: readonly string[];

  constructor({ attempt = '0', tokens = '' }: Readonly<Record<string, string>>) {
    this.#last = Number(attempt);
    this.#words = tokens.split(' ').filter(Boolean);
  }

  /** Identifies an attempt by its token: a ledger that came back older gives its number out again. */
  knows({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    return this.#tokensOf(attempt).includes(token);
  }

  /** Whether the payout's state belongs to this attempt: the last one, and the newest of several timelines. */
  isNewest({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    return attempt === this.#last && this.#tokensOf(attempt).at(-1) === token;
  }

  /** Several for several timelines. */
  #tokensOf(attempt: number): readonly string[] {
    return attempt <= this.#last ? (this.#words[attempt - 1]?.split('/') ?? []) : [];
  }
}

export interface BegunSend {
  readonly payoutId: string;
  /** Wall clock of the worker, ms. */
  readonly at: number;
  /** By the clock of Redis, ms. */
  readonly storedAt: number;
}

/** The newest sends first, as far as events are kept. For people: someone who can write to Redis can alter it. */
export async function readSends(
  connection: LedgerConnection,
  limit: number,
  before?: string,
): Promise<{ readonly sends: readonly BegunSend[]; readonly next: string | undefined }> {
  // Adoptions move payouts too; only a begin leads to this state.
  const toSend = (eventId: string, { type, to, payoutId = '', at }: PayoutRecord): BegunSend | undefined =>
    type === 'state' && to === 'sending' && !Number.isNaN(new Date(Number(at)).getTime())
      ? { payoutId, at: Number(at), storedAt: timeOfEvent(eventId) }
      : undefined;
  const { found, next } = await searchEvents(connection, before, limit, toSend);
  return { sends: found, next };
}
